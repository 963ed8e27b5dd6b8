/**
 * Looks at Redis for all viewers of this process together: one look at a time, whatever the number of tabs, and none while nobody
 * watches.
 *
 * A look that takes long is not repeated at once: at least three times as long as it took passes before the next, so that the
 * console never keeps a server, or this process, busy with watching.
 */
import type { Topic } from "./api.js";
import type { Look, Wanted } from "./look.js";
import { HttpProblem } from "./problem.js";
import { type Change, changeOf, NOTHING, type Snapshot } from "./snapshot.js";
import type { StoreLink } from "./store-link.js";

/** Share of the time that looking may take, as a factor. */
const REST = 3;

/** Somebody who watches. */
export interface Watcher {
  readonly topics: ReadonlySet<Topic>;
  /** The lock to look at in detail, if `lock` is among the topics. */
  readonly lock: Wanted["locks"][number] | undefined;
}

/** See the file header. */
export class Poller {
  readonly #link: StoreLink;
  readonly #look: Look;
  readonly #pollMs: number;
  readonly #watchers = new Set<Watcher>();
  #snapshot: Snapshot = NOTHING;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** Topics of those who only asked once. */
  readonly #asked = new Set<Topic>();
  /** As `#snapshot`, which is kept for watchers only. */
  #last: Snapshot = NOTHING;
  #isClosed = false;
  #told = "";
  /** How many looks there were. */
  looks = 0;
  /** Told what is different after each look. */
  onChange: (change: Change) => void = () => {};

  /** Told what is no trouble of Redis but a failure of ours. */
  onError: (error: unknown) => void = () => {};

  constructor(link: StoreLink, look: Look, pollMs: number) {
    this.#link = link;
    this.#look = look;
    this.#pollMs = pollMs;
    link.onChange = (store) => this.onChange({ atMs: look.nowMs(), store });
  }

  /** What the last look has found. */
  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  /** Whether it goes on looking by itself. */
  get isRunning(): boolean {
    return this.#timer !== undefined || this.#looking !== undefined;
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
      this.#look.forget();
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
    this.#next ??= (this.#looking ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        this.#looking = this.#lookOnce().finally(() => {
          this.#looking = undefined;
        });
        return this.#looking;
      });
    await this.#next;
    return this.#last;
  }

  /** Ends. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#looking?.catch(() => {});
  }

  async #lookOnce(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const topics = new Set(this.#asked);
    this.#asked.clear();
    for (const watcher of this.#watchers) for (const topic of watcher.topics) topics.add(topic);
    const locks = [...this.#watchers].flatMap(({ lock }) => (lock === undefined ? [] : [lock]));
    const begunMs = performance.now();
    let restMs = this.#pollMs;
    try {
      const before = this.#snapshot;
      const found = await this.#link.use((backend) => this.#look.at(backend, { topics, locks }, before));
      this.looks += 1;
      this.#last = found;
      restMs = Math.max(this.#pollMs, REST * (performance.now() - begunMs));
      if (this.#watchers.size > 0 && !this.#isClosed) {
        this.#snapshot = found;
        const change = changeOf(before, found);
        if (change !== undefined) this.onChange(change);
      }
    } catch (error) {
      restMs = this.#link.pauseMs > 0 ? this.#link.pauseMs : this.#pollMs;
      this.#tell(error);
      throw error;
    } finally {
      if (this.#watchers.size > 0 && !this.#isClosed) {
        // A process that has nothing else to do may end.
        this.#timer = setTimeout(() => void this.fresh().catch(() => {}), restMs).unref();
      }
    }
  }

  /** Once, and not at every look. */
  #tell(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof HttpProblem || text === this.#told) return;
    this.#told = text;
    this.onError(error);
  }
}
