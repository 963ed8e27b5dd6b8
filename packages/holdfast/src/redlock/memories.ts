/**
 * Makes sure that the servers of a quorum know the length of the longest lease
 * (docs/adr/131-longest-lease-on-a-quorum.md).
 *
 * A server that lost its leases must not grant until the longest of them has ended, and only the other servers know how
 * long that lease is. Two rules ensure that they know it:
 *
 * - No server is asked for a lease before a majority has been informed of the lease's length. A vote counts only if its
 *   server was informed before the first server was asked, and has not restarted since.
 * - A server that lost its leases votes again once two things have happened: a majority of the servers, all of which
 *   know the longest lease, has been asked since the restart; and the longest lease that they reported has ended.
 *
 * Any two majorities share a server, so at least one server that was informed is asked. A server whose store has no
 * `memory` is assumed to handle this itself. For an acquire, the rules cost one comparison per server.
 */
import type { QuorumError } from "../core/errors.js";
import type { Runtime, Timer } from "../core/runtime.js";
import { quietFailure, type Standing } from "../core/store.js";
import { quorumOf } from "./decision.js";
import { type Answers, count, type Failed, failure, type QuorumServer, quorumError } from "./servers.js";

/** Shortest time between two rounds that ask all servers because one of them lost its leases, in ms. */
const ROUND_MS = 1_000;
/**
 * Once enough servers have replied, the slower ones get as much extra time as those replies took, but at least this
 * many ms.
 */
const LEAST_EXTRA_MS = 5;
/** Longest extra time, as a fraction of the request timeout. */
const MOST_EXTRA = 0.25;

/** Stands for the reply of a server whose store has no `memory`. */
const OWN: Standing = { outcome: "settled", longestMs: 0, run: "" };

/**
 * Returns the server's run if, in this run, the server may grant and has been informed of leases of `leaseMs`;
 * otherwise undefined. Returns an empty string if the server's store has no `memory`.
 */
export function informedRun({ store: { memory } }: QuorumServer, leaseMs: number): string | undefined {
  return memory === undefined ? "" : memory.knows(leaseMs);
}

/** Tells the servers of a quorum how long the longest lease is. One object per Holdfast instance. */
export class Memories {
  readonly #servers: readonly QuorumServer[];
  readonly #runtime: Runtime;
  readonly #majority: number;
  #informing: { readonly leaseMs: number; readonly replies: Promise<Answers<Standing>> } | undefined;
  #round: Promise<void> | undefined;
  #roundAtMs = -Infinity;

  constructor(servers: readonly QuorumServer[], runtime: Runtime) {
    this.#servers = servers;
    this.#runtime = runtime;
    this.#majority = quorumOf(servers.length);
  }

  /**
   * Informs a majority of the servers that leases can last `leaseMs`. Returns undefined if that is already done, which
   * is nearly always the case. Never rejects.
   *
   * @returns the reason if no majority may grant such a lease now; otherwise undefined
   */
  inform(lockName: string, leaseMs: number, timeoutMs: number): Promise<QuorumError | undefined> | undefined {
    if (!this.#isInformed(leaseMs)) return this.#informAll(lockName, leaseMs, timeoutMs);
    if (this.#isAnyAlone()) void this.#startRound(timeoutMs);
    return undefined;
  }

  #isInformed(leaseMs: number): boolean {
    const informed = this.#servers.filter((server) => informedRun(server, leaseMs) !== undefined);
    return informed.length >= this.#majority;
  }

  #isAnyAlone(): boolean {
    return this.#servers.some(({ store }) => store.memory?.aloneIn !== undefined);
  }

  async #informAll(lockName: string, leaseMs: number, timeoutMs: number): Promise<QuorumError | undefined> {
    const first = await this.#informOnce(leaseMs, timeoutMs);
    const round = this.#isAnyAlone() ? this.#startRound(timeoutMs) : undefined;
    if (!this.#isInformed(leaseMs)) await round;
    if (this.#isInformed(leaseMs)) return undefined;
    // Ask again after a round, because the servers then know more precisely when they can grant.
    const last = round === undefined ? first : await this.#informOnce(leaseMs, timeoutMs);
    if (this.#isInformed(leaseMs)) return undefined;
    const answers = last.map((reply) => answerOf(lockName, reply));
    const why = "no majority of the servers is allowed to grant it yet";
    return quorumError(lockName, answers, { why, mayHaveRun: false });
  }

  #informOnce(leaseMs: number, timeoutMs: number): Promise<Answers<Standing>> {
    const known = this.#informing;
    if (known !== undefined && known.leaseMs >= leaseMs) return known.replies;
    const replies = this.#askAll(leaseMs, timeoutMs, () => this.#isInformed(leaseMs));
    const informing = { leaseMs, replies };
    this.#informing = informing;
    void replies.then(() => {
      if (this.#informing === informing) this.#informing = undefined;
    });
    return replies;
  }

  /** Asks all servers on behalf of those that lost their leases, at most once per ROUND_MS. Never rejects. */
  #startRound(timeoutMs: number): Promise<void> {
    const nowMs = this.#runtime.monotonicMs();
    if (this.#round === undefined && nowMs - this.#roundAtMs >= ROUND_MS) {
      this.#roundAtMs = nowMs;
      this.#round = this.#runRound(timeoutMs).finally(() => {
        this.#round = undefined;
      });
    }
    return this.#round ?? Promise.resolve();
  }

  async #runRound(timeoutMs: number): Promise<void> {
    // Replies from other servers count only if those servers were asked after the restart, so read the runs first.
    const alone = this.#servers.flatMap(({ store: { memory } }) =>
      memory?.aloneIn === undefined ? [] : [{ memory, run: memory.aloneIn }],
    );
    // A server knows the longest lease if it never lost its leases, or has learned the length from the others.
    const known = (answers: Answers<Standing>): number => count(answers, "settled") + count(answers, "quiet");
    const replies = await this.#askAll(0, timeoutMs, (soFar) => known(soFar) >= this.#majority);
    // If most servers lost their leases, or have just started for the first time, a majority cannot know the longest
    // lease. Use the replies that there are.
    const areMostAlone = count(replies, "alone") >= this.#majority;
    if (known(replies) < this.#majority && !areMostAlone) return;
    const longestMs = Math.max(
      ...replies.map((reply) => (reply !== undefined && "longestMs" in reply ? reply.longestMs : 0)),
    );
    await Promise.allSettled(alone.map(({ memory, run }) => memory.ask(longestMs, timeoutMs, run)));
  }

  /**
   * Asks all servers in parallel.
   *
   * @returns the replies, once there are enough of them and the extra time for slower servers has passed, or once all
   *          servers have replied
   */
  #askAll(
    leaseMs: number,
    timeoutMs: number,
    isEnough: (replies: Answers<Standing>) => boolean,
  ): Promise<Answers<Standing>> {
    const servers = this.#servers;
    const startedAtMs = this.#runtime.monotonicMs();
    return new Promise((resolve) => {
      const replies: (Standing | Failed | undefined)[] = servers.map(() => undefined);
      let open = servers.length;
      let extra: Timer | undefined;
      const settle = (index: number, reply: Standing | Failed): void => {
        replies[index] = reply;
        open -= 1;
        if (open === 0) {
          extra?.cancel();
          resolve(replies);
        } else if (extra === undefined && isEnough(replies)) {
          const tookMs = this.#runtime.monotonicMs() - startedAtMs;
          const extraMs = Math.min(Math.max(tookMs, LEAST_EXTRA_MS), timeoutMs * MOST_EXTRA);
          extra = this.#runtime.startTimer(() => resolve([...replies]), extraMs, true);
        }
      };
      for (const { index, store } of servers) {
        if (store.memory === undefined) settle(index, OWN);
        else
          store.memory.ask(leaseMs, timeoutMs).then(
            (standing) => settle(index, standing),
            (error: unknown) => settle(index, { outcome: "failed", error }),
          );
      }
    });
  }
}

/** If a server must not grant yet, replaces its reply with a failure that says why, for an error report. */
function answerOf(lockName: string, reply: Standing | Failed | undefined): Standing | Failed | undefined {
  if (reply?.outcome !== "quiet" && reply?.outcome !== "alone") return reply;
  return failure(lockName, quietFailure({ restMs: reply.restMs, isAlone: reply.outcome === "alone" }));
}
