/**
 * What the servers of a quorum remember of how long leases are (docs/adr/131-longest-lease-on-a-quorum.md).
 *
 * A server that forgot its leases stays out for the longest of them, and only the other servers can tell how long that is.
 * Two rules make sure that they can:
 *
 * - No server is asked for a lease before a majority was told how long it is. A vote counts only if its server was told
 *   before the first one was asked, and has not been restarted since.
 * - A server that forgot votes again when a majority of the others, of which none is in the same case, were asked after it
 *   came back, and the longest lease that they know of is over.
 *
 * Two majorities share a server, so one of those that were asked was told. Servers whose store asks them nothing look after
 * all that themselves. On the path of an acquire this costs one comparison for each server.
 */
import type { ServerAnswer } from "../core/error-messages.js";
import { type QuorumError, StoreError } from "../core/errors.js";
import type { Runtime, Timer } from "../core/runtime.js";
import { quietFailure, type Standing } from "../core/store.js";
import { quorumOf } from "./decision.js";
import { failed, type QuorumServer, quorumError } from "./servers.js";

/** Between two rounds in which servers are asked because another one forgot. */
const ROUND_MS = 1_000;
/** When a majority was told, slower servers are waited for as long again as that took, but no shorter than this. */
const LEAST_EXTRA_MS = 5;
/** And no longer than this share of the time that an answer may take. */
const MOST_EXTRA = 0.25;

/** What one server has said of itself, or why it has not. */
type Word = Standing | { readonly outcome: "failed"; readonly error: unknown };
type Words = readonly (Word | undefined)[];

/** Of a server whose store asks it nothing. */
const OWN: Word = { outcome: "settled", longestMs: 0, run: "" };

/** In which run that server was told of leases so long; undefined if it was not, or may not grant. */
export function toldIn({ store: { memory } }: QuorumServer, leaseMs: number): string | undefined {
  return memory === undefined ? "" : memory.knows(leaseMs);
}

/** See the file header. One for each Holdfast. */
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
   * Tells a majority that leases can be so long; undefined if that is done, as it nearly always is. Never rejects.
   *
   * @returns why no majority may grant such a lease now, if so
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
    // What they say after the round tells better when they grant again.
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

  /** Asks all servers, because one of them forgot. Never rejects; does nothing if that was done a moment ago. */
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
    // What the others say counts only if they are asked after it came back, so that is looked at first.
    const alone = this.#servers.flatMap(({ store: { memory } }) =>
      memory?.aloneIn === undefined ? [] : [{ memory, run: memory.aloneIn }],
    );
    const remember = (words: Words): number => words.filter((word) => isRemembering(word)).length;
    const words = await this.#askAll(0, timeoutMs, (soFar) => remember(soFar) >= this.#majority);
    // If a majority forgot, nobody is left to ask, as at the first start of all: what is known has to do.
    const areMostAlone = words.filter((word) => word?.outcome === "alone").length >= this.#majority;
    if (remember(words) < this.#majority && !areMostAlone) return;
    const longestMs = Math.max(
      ...words.map((word) => (word !== undefined && "longestMs" in word ? word.longestMs : 0)),
    );
    await Promise.allSettled(alone.map(({ memory, run }) => memory.ask(longestMs, timeoutMs, run)));
  }

  /** Asks all servers at once. @returns what they have said when it is enough and the slower ones had their time, or when all have */
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

/** Whether that server knows of every lease of which a majority was told: it never forgot, or the others have told it since. */
function isRemembering(word: Word | undefined): boolean {
  return word?.outcome === "settled" || word?.outcome === "quiet";
}

/** What a server said, for a report. */
function answerOf(server: number, lockName: string, word: Word | undefined): ServerAnswer {
  if (word?.outcome === "failed") return failed(server, word.error);
  if (word?.outcome === "quiet" || word?.outcome === "alone") {
    const { restMs, outcome } = word;
    return failed(server, new StoreError(lockName, quietFailure({ restMs, isAlone: outcome === "alone" })));
  }
  return { server, answer: word === undefined ? "none" : "done", leaseLeftMs: undefined, error: undefined };
}
