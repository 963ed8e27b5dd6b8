/**
 * Makes sure that the servers of a quorum know the length of the longest lease
 * (docs/adr/131-longest-lease-on-a-quorum.md).
 *
 * A server that lost its leases may not grant until the longest of them has ended, and only the other servers know how
 * long that is. Two rules ensure that they do:
 *
 * - No server is asked for a lease before a majority has been informed of its length. A vote counts only if its server
 *   was informed before the first server was asked, and has not restarted since.
 * - A server that lost its leases votes again once two things have happened: a majority of servers that have not lost
 *   theirs were asked after its restart, and the longest lease that they reported has ended.
 *
 * Two majorities share a server, so at least one of the servers that are asked was informed. A server whose store has
 * no `memory` is assumed to handle this itself. On the path of an acquire, this costs one comparison per server.
 */
import type { ServerAnswer } from "../core/error-messages.js";
import { type QuorumError, StoreError } from "../core/errors.js";
import type { Runtime, Timer } from "../core/runtime.js";
import { quietFailure, type Standing } from "../core/store.js";
import { quorumOf } from "./decision.js";
import { failed, type QuorumServer, quorumError } from "./servers.js";

/** Shortest time between two rounds that ask all servers because one of them lost its leases, in ms. */
const ROUND_MS = 1_000;
/**
 * Once a majority is informed, wait for slower servers for as long again as that took, but at least this long, in ms.
 */
const LEAST_EXTRA_MS = 5;
/** Upper bound of that wait, as a share of the request timeout. */
const MOST_EXTRA = 0.25;

/** The reply of one server about itself, or the error. */
type Word = Standing | { readonly outcome: "failed"; readonly error: unknown };
type Words = readonly (Word | undefined)[];

/** Stands for the reply of a server whose store has no `memory`. */
const OWN: Word = { outcome: "settled", longestMs: 0, run: "" };

/**
 * Returns the server run in which the server was informed of leases of `leaseMs`; undefined if it was not, or if it may
 * not grant. Empty for a server whose store has no `memory`.
 */
export function toldIn({ store: { memory } }: QuorumServer, leaseMs: number): string | undefined {
  return memory === undefined ? "" : memory.knows(leaseMs);
}

/** Informs the servers of a quorum of the longest lease. One object per Holdfast instance. */
export class Memories {
  readonly #servers: readonly QuorumServer[];
  readonly #runtime: Runtime;
  readonly #majority: number;
  #telling: { readonly leaseMs: number; readonly words: Promise<Words> } | undefined;
  #round: Promise<void> | undefined;
  #roundAtMs = -Infinity;

  constructor(servers: readonly QuorumServer[], runtime: Runtime) {
    this.#servers = servers;
    this.#runtime = runtime;
    this.#majority = quorumOf(servers.length);
  }

  /**
   * Informs a majority of the servers of leases of `leaseMs`. Returns undefined if that is already done, which is
   * nearly always the case. Never rejects.
   *
   * @returns the reason if no majority may grant such a lease now; otherwise undefined
   */
  told(lockName: string, leaseMs: number, timeoutMs: number): Promise<QuorumError | undefined> | undefined {
    if (!this.#isTold(leaseMs)) return this.#tell(lockName, leaseMs, timeoutMs);
    if (this.#isAnyAlone()) void this.#askForThoseAlone(timeoutMs);
    return undefined;
  }

  #isTold(leaseMs: number): boolean {
    const told = this.#servers.filter((server) => toldIn(server, leaseMs) !== undefined);
    return told.length >= this.#majority;
  }

  #isAnyAlone(): boolean {
    return this.#servers.some(({ store }) => store.memory?.aloneIn !== undefined);
  }

  async #tell(lockName: string, leaseMs: number, timeoutMs: number): Promise<QuorumError | undefined> {
    const words = await this.#tellOnce(leaseMs, timeoutMs);
    const round = this.#isAnyAlone() ? this.#askForThoseAlone(timeoutMs) : undefined;
    if (!this.#isTold(leaseMs)) await round;
    if (this.#isTold(leaseMs)) return undefined;
    // Their replies after the round state more precisely when they grant again.
    const last = round === undefined ? words : await this.#tellOnce(leaseMs, timeoutMs);
    if (this.#isTold(leaseMs)) return undefined;
    const answers = last.map((word, server) => answerOf(server, lockName, word));
    return quorumError(lockName, answers, {
      why: "fewer than a majority of the servers may grant it",
      mayHaveRun: false,
    });
  }

  #tellOnce(leaseMs: number, timeoutMs: number): Promise<Words> {
    const known = this.#telling;
    if (known !== undefined && known.leaseMs >= leaseMs) return known.words;
    const words = this.#askAll(leaseMs, timeoutMs, () => this.#isTold(leaseMs));
    const telling = { leaseMs, words };
    this.#telling = telling;
    void words.then(() => {
      if (this.#telling === telling) this.#telling = undefined;
    });
    return words;
  }

  /** Asks all servers on behalf of those that lost their leases, at most once per ROUND_MS. Never rejects. */
  #askForThoseAlone(timeoutMs: number): Promise<void> {
    const nowMs = this.#runtime.monotonicMs();
    if (this.#round === undefined && nowMs - this.#roundAtMs >= ROUND_MS) {
      this.#roundAtMs = nowMs;
      this.#round = this.#playRound(timeoutMs).finally(() => {
        this.#round = undefined;
      });
    }
    return this.#round ?? Promise.resolve();
  }

  async #playRound(timeoutMs: number): Promise<void> {
    // The replies of the others count only if they were asked after the restart, so read the runs first.
    const alone = this.#servers.flatMap(({ store: { memory } }) =>
      memory?.aloneIn === undefined ? [] : [{ memory, run: memory.aloneIn }],
    );
    const remember = (words: Words): number => words.filter((word) => isRemembering(word)).length;
    const words = await this.#askAll(0, timeoutMs, (soFar) => remember(soFar) >= this.#majority);
    // If a majority lost their leases, as at the very first start, no majority remembers. Use what is known.
    const areMostAlone = words.filter((word) => word?.outcome === "alone").length >= this.#majority;
    if (remember(words) < this.#majority && !areMostAlone) return;
    const longestMs = Math.max(
      ...words.map((word) => (word !== undefined && "longestMs" in word ? word.longestMs : 0)),
    );
    await Promise.allSettled(alone.map(({ memory, run }) => memory.ask(longestMs, timeoutMs, run)));
  }

  /**
   * Asks all servers in parallel.
   *
   * @returns the replies when they are enough and the extra time for slower servers has passed, or when all have
   *         replied
   */
  #askAll(leaseMs: number, timeoutMs: number, isEnough: (words: Words) => boolean): Promise<Words> {
    const servers = this.#servers;
    const startedAtMs = this.#runtime.monotonicMs();
    return new Promise((resolve) => {
      const words: (Word | undefined)[] = servers.map(() => undefined);
      let open = servers.length;
      let extra: Timer | undefined;
      const said = (index: number, word: Word): void => {
        words[index] = word;
        open -= 1;
        if (open === 0) {
          extra?.cancel();
          resolve(words);
        } else if (extra === undefined && isEnough(words)) {
          const tookMs = this.#runtime.monotonicMs() - startedAtMs;
          const extraMs = Math.min(Math.max(tookMs, LEAST_EXTRA_MS), timeoutMs * MOST_EXTRA);
          extra = this.#runtime.startTimer(() => resolve([...words]), extraMs, true);
        }
      };
      for (const { index, store } of servers) {
        if (store.memory === undefined) said(index, OWN);
        else
          store.memory.ask(leaseMs, timeoutMs).then(
            (standing) => said(index, standing),
            (error: unknown) => said(index, { outcome: "failed", error }),
          );
      }
    });
  }
}

/** Whether the server knows the longest lease: it never lost its leases, or has learned the length from the others. */
function isRemembering(word: Word | undefined): boolean {
  return word?.outcome === "settled" || word?.outcome === "quiet";
}

/** Converts the reply of a server for an error report. */
function answerOf(server: number, lockName: string, word: Word | undefined): ServerAnswer {
  if (word?.outcome === "failed") return failed(server, word.error);
  if (word?.outcome === "quiet" || word?.outcome === "alone") {
    const { restMs, outcome } = word;
    return failed(server, new StoreError(lockName, quietFailure({ restMs, isAlone: outcome === "alone" })));
  }
  return { server, answer: word === undefined ? "none" : "done", leaseLeftMs: undefined, error: undefined };
}
