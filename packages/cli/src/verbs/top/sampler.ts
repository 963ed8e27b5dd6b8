/** Takes samples of all locks for `top`, and computes statistics across samples. */
import { type HistoryEntry, type LockEntry, readHistory, surveyAll } from "holdfast/admin";
import type { Connection } from "../../frame/verb.js";
import { serverNowMs } from "../../listing/server-time.js";

/** One lock in one snapshot. */
export interface HotLock {
  readonly lock: LockEntry;
  /** Server time of the reading, in ms since 1970. */
  readonly atMs: number;
  readonly longestWaitMs: number | undefined;
  /** The percentage of samples in which the lock was held; undefined until there are two samples. */
  readonly heldPercent: number | undefined;
  /** What the history says about the last minute; undefined without a history. */
  readonly past: Past | undefined;
}

/** What the history says about the last minute. */
export interface Past {
  readonly grantsPerSecond: number;
  readonly refused: number;
  readonly lost: number;
}

/** All locks at one point in time. */
export interface Snapshot {
  /** Server time in ms since 1970. */
  readonly atMs: number;
  readonly locks: readonly HotLock[];
  /** False if there are more locks than were read. */
  readonly isComplete: boolean;
  /** The number of servers that did not reply. Their locks are missing. */
  readonly unreachable: number;
}

/** The most locks to read in a sample. Reading more would burden the servers, and only about twenty are shown. */
const MOST_LOCKS = 5_000;
/** The number of samples that are kept: one minute at one sample a second. */
const MOST_SAMPLES = 60;
const PAST_MS = 60_000;

/** Takes samples of all locks, and remembers which locks were held in the most recent ones. */
export class Sampler {
  readonly #connection: Connection;
  readonly #pattern: string | undefined;
  /** For each of the last samples, the locks that were held. */
  readonly #samples: ReadonlySet<string>[] = [];

  constructor(connection: Connection, pattern: string | undefined) {
    this.#connection = connection;
    this.#pattern = pattern;
  }

  /** Reads all locks now. @throws StoreError */
  async sample(): Promise<Snapshot> {
    const pattern = this.#pattern === undefined ? {} : { pattern: this.#pattern };
    const { locks, ...extent } = await surveyAll(this.#connection.holdfast, { ...pattern, most: MOST_LOCKS });
    const atMs = await serverNowMs(this.#connection);
    this.#samples.push(new Set(locks.filter(({ holders }) => holders.length > 0).map(idOf)));
    if (this.#samples.length > MOST_SAMPLES) this.#samples.shift();
    return { ...extent, atMs, locks: locks.map((lock) => this.#hot(lock, atMs)) };
  }

  /**
   * Adds the history to the given locks. Sends a request for each lock, so pass only those that are shown. @throws
   * StoreError
   */
  async withPast(locks: readonly HotLock[]): Promise<readonly HotLock[]> {
    return await Promise.all(
      locks.map(async (hot) => {
        const options = { name: hot.lock.name, sinceMs: PAST_MS, limit: 10_000 };
        return { ...hot, past: pastOf(hot.lock, await readHistory(this.#connection.holdfast, options)) };
      }),
    );
  }

  #hot(lock: LockEntry, atMs: number): HotLock {
    const ages = lock.waiters.flatMap(({ sinceAtMs }) => (sinceAtMs === undefined ? [] : [atMs - sinceAtMs]));
    const id = idOf(lock);
    const held = this.#samples.filter((sample) => sample.has(id)).length;
    return {
      lock,
      atMs,
      longestWaitMs: ages.length === 0 ? undefined : Math.max(0, ...ages),
      heldPercent: this.#samples.length < 2 ? undefined : Math.round((100 * held) / this.#samples.length),
      past: undefined,
    };
  }
}

/** Identifies a lock among all locks, because a lock with the `key` option may have the name of another. */
function idOf({ kind, name, key }: LockEntry): string {
  return `${kind} ${key === undefined ? "name" : "key"} ${name}`;
}

function pastOf({ kind }: LockEntry, entries: readonly HistoryEntry[]): Past | undefined {
  const ours = entries.filter((entry) => entry.kind === kind || (kind === "mutex" && entry.kind === "reentrant-mutex"));
  if (ours.length === 0) return undefined;
  const count = (...outcomes: readonly string[]): number =>
    ours.filter(({ outcome }) => outcomes.includes(outcome)).length;
  const grants = count("held", "released", "lost", "expired", "forced");
  return {
    grantsPerSecond: Math.round((10_000 * grants) / PAST_MS) / 10,
    refused: count("skipped"),
    lost: count("lost", "expired", "forced"),
  };
}
