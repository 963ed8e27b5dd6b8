/** Filters snapshots and changes for one viewer: its topics, limited to what it may see. */
import type { Viewer } from "./access.js";
import type { ActionName, LockAnswer, LocksState, StreamChange, StreamState, Topic } from "./api.js";
import { lockAnswer } from "./lock-answer.js";
import type { LockPlace } from "./place.js";
import type { Poller } from "./poller.js";
import { lockKey } from "./reader.js";
import { type Change, hasTopic, type LockDetail, type Snapshot } from "./snapshot.js";
import type { StoreLink } from "./store-link.js";
import { Visibility } from "./visibility.js";

/** The parts of a view. */
export interface StreamViewParts {
  readonly viewer: Viewer;
  readonly topics: ReadonlySet<Topic>;
  readonly lock: LockPlace | undefined;
  readonly allow: readonly ActionName[];
  readonly poller: Poller;
  readonly link: StoreLink;
  readonly nowMs: () => number;
}

/** The view of one viewer. */
export class StreamView {
  readonly #parts: StreamViewParts;
  readonly #visibility: Visibility;

  constructor(parts: StreamViewParts) {
    this.#parts = parts;
    this.#visibility = new Visibility(parts.viewer);
  }

  /** Whether the viewer still has access. */
  isAllowed(): Promise<boolean> {
    return this.#parts.viewer.may("view", undefined);
  }

  /** The complete state at this moment; `isComplete` is false if a topic was not read yet. */
  state(): { readonly isComplete: boolean; readonly data: Promise<StreamState> } {
    const { topics, poller, lock } = this.#parts;
    const { snapshot } = poller;
    const key = lock === undefined ? undefined : lockKey(lock);
    const detail = key === undefined ? undefined : snapshot.details.get(key);
    const isComplete = [...topics].every((topic) => hasTopic(snapshot, topic, key));
    return { isComplete, data: this.#stateOf(snapshot, detail) };
  }

  /** The part of a change that concerns this viewer; undefined if none. */
  async change(change: Change): Promise<StreamChange | undefined> {
    const { topics, lock, viewer } = this.#parts;
    const seen = this.#visibility;
    const visible: { -readonly [Field in keyof StreamChange]: StreamChange[Field] } = { v: 1, atMs: change.atMs };
    if (change.store !== undefined) visible.store = change.store;
    if (change.locks !== undefined && topics.has("locks")) {
      const { isCut, unreachable, isExtentNew } = change.locks;
      const [changed, removed] = await Promise.all([seen.rows(change.locks.changed), seen.rows(change.locks.removed)]);
      // A change that affects only locks that this viewer may not see is not sent, because it would reveal their
      // activity.
      const isOurs = viewer.seesAll || isExtentNew || changed.length + removed.length > 0;
      if (isOurs) visible.locks = { changed, removed: removed.map(({ id }) => id), isCut, unreachable };
    }
    const detail = lock === undefined ? undefined : change.details?.get(lockKey(lock));
    if (detail !== undefined) visible.lock = await this.#lock(detail, change.atMs);
    if (change.clients !== undefined && topics.has("clients")) visible.clients = await seen.clients(change.clients);
    if (change.semaphores !== undefined && topics.has("semaphores"))
      visible.semaphores = await seen.semaphores(change.semaphores);
    if (change.elections !== undefined && topics.has("elections"))
      visible.elections = await seen.elections(change.elections);
    if (change.redis != null && topics.has("redis")) visible.redis = this.#redis(change.redis, change.atMs);
    return Object.keys(visible).length > 2 ? visible : undefined;
  }

  async #stateOf(snapshot: Snapshot, detail: LockDetail | undefined): Promise<StreamState> {
    const { topics, link, nowMs } = this.#parts;
    const seen = this.#visibility;
    const { clients, semaphores, elections, redis } = snapshot;
    const store = link.store;
    const atMs = nowMs();
    return {
      v: 1,
      atMs,
      store,
      ...(topics.has("locks") && { locks: await this.#locks(snapshot) }),
      ...(topics.has("lock") && { lock: detail === undefined ? null : await this.#lock(detail, atMs) }),
      ...(topics.has("clients") && { clients: clients && (await seen.clients(clients)) }),
      ...(topics.has("semaphores") && { semaphores: semaphores && (await seen.semaphores(semaphores)) }),
      ...(topics.has("elections") && { elections: elections && (await seen.elections(elections)) }),
      ...(topics.has("redis") && { redis: redis && this.#redis(redis, atMs) }),
    };
  }

  async #locks({ rows, isCut, unreachable, isPartial }: Snapshot): Promise<LocksState | null> {
    if (rows === null) return null;
    const all = Array.from(rows.values(), ({ row }) => row);
    return { rows: await this.#visibility.rows(all), isCut, unreachable, ...(isPartial && { isPartial }) };
  }

  async #lock(detail: LockDetail, atMs: number): Promise<LockAnswer | null> {
    const { viewer, allow } = this.#parts;
    const isSeen = await this.#visibility.ofName(detail.row.name);
    return isSeen ? lockAnswer(detail, { viewer, allow, atMs }) : null;
  }

  #redis(redis: NonNullable<Snapshot["redis"]>, atMs: number): NonNullable<StreamState["redis"]> {
    return { v: 1, atMs, store: this.#parts.link.store, ...redis };
  }
}
