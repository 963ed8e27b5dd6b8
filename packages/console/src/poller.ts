/**
 * Reads Redis for all viewers of this process: one read at a time, whatever the number of tabs, and none without
 * viewers.
 *
 * After a complete read, the poller pauses at least three times as long as the read took, so the console never keeps a
 * server or this process busy.
 */
import type { Topic } from "./api.js";
import type { Backend } from "./backend.js";
import { HttpProblem } from "./problem.js";
import { lockKey, type Reader, type Wanted } from "./reader.js";
import { type Change, changeOf, completed, hasTopic, NOTHING, type Snapshot } from "./snapshot.js";
import type { StoreLink } from "./store-link.js";

/** After a complete read, the pause is at least this many times as long as the read took. */
const REST = 3;

/** A viewer that watches some topics. */
export interface Watcher {
  readonly topics: ReadonlySet<Topic>;
  /** The lock to read in detail, if `lock` is among the topics. */
  readonly lock: Wanted["locks"][number] | undefined;
}

/** Reads the watched topics periodically. */
export class Poller {
  readonly #link: StoreLink;
  readonly #reader: Reader;
  readonly #pollMs: number;
  readonly #watchers = new Set<Watcher>();
  #snapshot: Snapshot = NOTHING;
  #timer: NodeJS.Timeout | undefined;
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** Topics of one-time requests. */
  readonly #asked = new Set<Topic>();
  /** The result of the last read. `#snapshot` exists only while there are watchers. */
  #last: Snapshot = NOTHING;
  #isClosed = false;
  #lastError = "";
  /** The number of reads so far. */
  reads = 0;
  /** Called with the changes after each read. */
  onChange: (change: Change) => void = () => {};

  /** Called with internal errors of the console, not with errors from Redis. */
  onError: (error: unknown) => void = () => {};

  constructor(link: StoreLink, reader: Reader, pollMs: number) {
    this.#link = link;
    this.#reader = reader;
    this.#pollMs = pollMs;
    link.onChange = (store) => this.onChange({ atMs: reader.nowMs(), store });
  }

  /** The result of the last read. */
  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  /** Whether it polls periodically. */
  get isRunning(): boolean {
    return this.#timer !== undefined || this.#reading !== undefined;
  }

  /** Starts to read for a watcher. @returns a function that stops it */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    this.soon();
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      // Without watchers the snapshot becomes outdated, so the next viewer starts with a new read.
      this.#snapshot = NOTHING;
      this.#reader.forget();
    };
  }

  /** Reads now instead of after the interval, for example after an action or for a new viewer. */
  soon(): void {
    if (this.#watchers.size > 0) void this.fresh().catch(() => {});
  }

  /**
   * Waits for a read that begins after this call; concurrent calls share it.
   *
   * @returns the watched topics and the requested topics
   * @throws HttpProblem 503  Redis is down, or the console is closed
   */
  async fresh(topics: readonly Topic[] = []): Promise<Snapshot> {
    for (const topic of topics) this.#asked.add(topic);
    this.#next ??= (this.#reading ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        this.#reading = this.#readOnce().finally(() => {
          this.#reading = undefined;
        });
        return this.#reading;
      });
    await this.#next;
    return this.#last;
  }

  /** Stops polling. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#reading?.catch(() => {});
  }

  async #readOnce(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { topics, isSome, isWhole } = this.#topicsToRead();
    const locks = [...this.#watchers].flatMap(({ lock }) => (lock === undefined ? [] : [lock]));
    const begunMs = performance.now();
    let restMs = this.#pollMs;
    try {
      const before = this.#snapshot;
      const readAll = (backend: Backend): Promise<Snapshot> =>
        this.#reader.at(backend, { topics, locks, isWhole }, before);
      const read = await this.#link.use(readAll, { isPoll: true });
      const found = isSome ? completed(read, before) : read;
      this.reads += 1;
      this.#last = found;
      restMs = found.listing !== null || isSome ? 0 : Math.max(this.#pollMs, REST * (performance.now() - begunMs));
      if (this.#watchers.size > 0 && !this.#isClosed) {
        this.#snapshot = found;
        const change = changeOf(before, found);
        if (change !== undefined) this.onChange(change);
      }
    } catch (error) {
      restMs = this.#link.pauseMs > 0 ? this.#link.pauseMs : this.#pollMs;
      // The cursor may be invalid when the server comes back, so the list is read from its beginning.
      this.#snapshot = { ...this.#snapshot, listing: null };
      this.#reportError(error);
      throw error;
    } finally {
      if (this.#watchers.size > 0 && !this.#isClosed) {
        // `unref`: the timer alone must not keep the process running.
        this.#timer = setTimeout(() => void this.fresh().catch(() => {}), restMs).unref();
      }
    }
  }

  /**
   * Reads the topics of a new page first and alone, so that the page does not wait for a long list that another viewer
   * watches.
   */
  #topicsToRead(): Pick<Wanted, "topics" | "isWhole"> & { readonly isSome: boolean } {
    const asked = new Set(this.#asked);
    this.#asked.clear();
    const watched = new Set([...this.#watchers].flatMap((watcher) => [...watcher.topics]));
    const missing = [...this.#watchers].flatMap(({ topics: its, lock }) =>
      [...its].filter((topic) => !hasTopic(this.#snapshot, topic, lock && lockKey(lock))),
    );
    const topics = new Set([...asked, ...(missing.length > 0 ? missing : watched)]);
    const isSome = topics.size < new Set([...asked, ...watched]).size;
    return { topics, isSome, isWhole: asked.has("clients") };
  }

  /** Reports a repeated error only once. */
  #reportError(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof HttpProblem || text === this.#lastError) return;
    this.#lastError = text;
    this.onError(error);
  }
}
