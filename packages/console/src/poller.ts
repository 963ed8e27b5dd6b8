/**
 * Looks at Redis for all viewers of this process together: one look at a time, whatever the number of tabs, and none while nobody
 * watches.
 *
 * A look that takes long is not repeated at once: at least three times as long as it took passes before the next, so that the
 * console never keeps a server, or this process, busy with watching.
 */
import type { Topic } from "./api.js";
import { HttpProblem } from "./problem.js";
import type { Reader, Wanted } from "./reader.js";
import { type Change, changeOf, completed, hasTopic, NOTHING, type Snapshot } from "./snapshot.js";
import type { StoreLink } from "./store-link.js";

/** Share of the time that looking may take, as a factor. */
const REST = 3;

/** Somebody who watches. */
export interface Watcher {
  readonly topics: ReadonlySet<Topic>;
  /** The lock to read in detail, if `lock` is among the topics. */
  readonly lock: Wanted["locks"][number] | undefined;
}

/** See the file header. */
export class Poller {
  readonly #link: StoreLink;
  readonly #reader: Reader;
  readonly #pollMs: number;
  readonly #watchers = new Set<Watcher>();
  #snapshot: Snapshot = NOTHING;
  #timer: NodeJS.Timeout | undefined;
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** Topics of those who only asked once. */
  readonly #asked = new Set<Topic>();
  /** As `#snapshot`, which is kept for watchers only. */
  #last: Snapshot = NOTHING;
  #isClosed = false;
  #lastError = "";
  /** The number of reads so far. */
  reads = 0;
  /** Called with the changes after each read. */
  onChange: (change: Change) => void = () => {};

  /** Called with errors of the console itself, not of Redis. */
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

  /** Whether it continues to poll by itself. */
  get isRunning(): boolean {
    return this.#timer !== undefined || this.#reading !== undefined;
  }

  /** Looks for that watcher too, from now on. @returns ends it */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    this.soon();
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      // What is not looked at grows old; the next viewer begins with the truth.
      this.#snapshot = NOTHING;
      this.#reader.forget();
    };
  }

  /** Looks now rather than when it is time, as after an action or for a new viewer. */
  soon(): void {
    if (this.#watchers.size > 0) void this.fresh().catch(() => {});
  }

  /**
   * A look that begins after this call; calls that come while one is going on share the next.
   *
   * @returns what it found of what is watched, and of these topics besides
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

  /** Ends. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#reading?.catch(() => {});
  }

  async #readOnce(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { topics, isSome } = this.#topicsToRead();
    const locks = [...this.#watchers].flatMap(({ lock }) => (lock === undefined ? [] : [lock]));
    const begunMs = performance.now();
    let restMs = this.#pollMs;
    try {
      const before = this.#snapshot;
      const read = await this.#link.use((backend) => this.#reader.at(backend, { topics, locks }, before));
      const found = isSome ? completed(read, before) : read;
      this.reads += 1;
      this.#last = found;
      restMs = found.isPartial || isSome ? 0 : Math.max(this.#pollMs, REST * (performance.now() - begunMs));
      if (this.#watchers.size > 0 && !this.#isClosed) {
        this.#snapshot = found;
        const change = changeOf(before, found);
        if (change !== undefined) this.onChange(change);
      }
    } catch (error) {
      restMs = this.#link.pauseMs > 0 ? this.#link.pauseMs : this.#pollMs;
      this.#reportError(error);
      throw error;
    } finally {
      if (this.#watchers.size > 0 && !this.#isClosed) {
        // A process that has nothing else to do may end.
        this.#timer = setTimeout(() => void this.fresh().catch(() => {}), restMs).unref();
      }
    }
  }

  /**
   * A page that has just been opened is read first, by itself: it does not wait for a long list that another viewer watches, or
   * watched a moment ago.
   */
  #topicsToRead(): { readonly topics: ReadonlySet<Topic>; readonly isSome: boolean } {
    const asked = new Set(this.#asked);
    this.#asked.clear();
    const watched = new Set([...this.#watchers].flatMap((watcher) => [...watcher.topics]));
    const missing = [...watched].filter((topic) => !hasTopic(this.#snapshot, topic));
    const topics = new Set([...asked, ...(missing.length > 0 ? missing : watched)]);
    return { topics, isSome: topics.size < new Set([...asked, ...watched]).size };
  }

  /** Reports an error once, not at each read. */
  #reportError(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof HttpProblem || text === this.#lastError) return;
    this.#lastError = text;
    this.onError(error);
  }
}
