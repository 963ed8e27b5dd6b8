/** The result of one read of all topics, and the difference between two reads. */
import type {
  ClientsState,
  ElectionsState,
  Extent,
  LockAnswer,
  LockRow,
  RedisAnswer,
  SemaphoresState,
  StoreView,
  Topic,
} from "./api.js";
import type { Listing } from "./listing.js";

/** The details of a lock, except for the fields that depend on the viewer. */
export type LockDetail = Omit<LockAnswer, "v" | "atMs" | "actions">;

/** A row of the list with its JSON, which is compared to find changes. */
export interface KeptRow {
  readonly row: LockRow;
  readonly text: string;
}

/** The state of all topics after one read. Topics that were not read are null. The extent is that of the rows. */
export interface Snapshot extends Extent {
  readonly atMs: number;
  readonly rows: ReadonlyMap<string, KeptRow> | null;
  /** True if the rows are only those of `listing`. The clients have a separate flag. */
  readonly isPartial: boolean;
  /** Where the first read of the list continues; null if no such read is under way. */
  readonly listing: Listing | null;
  /** Details of the watched locks, by `lockKey`. */
  readonly details: ReadonlyMap<string, LockDetail>;
  /** Includes all holds of each client; `Visibility` limits them for each viewer. */
  readonly clients: ClientsState | null;
  readonly semaphores: SemaphoresState | null;
  readonly elections: ElectionsState | null;
  readonly redis: Omit<RedisAnswer, "v" | "atMs" | "store"> | null;
}

/** The snapshot before the first read. */
export const NOTHING: Snapshot = {
  atMs: 0,
  rows: null,
  isCut: false,
  unreachable: 0,
  isPartial: false,
  listing: null,
  details: new Map(),
  clients: null,
  semaphores: null,
  elections: null,
  redis: null,
};

/** Whether a topic was read completely. @param lock  the `lockKey` of the lock, for the topic `lock` */
export function hasTopic(snapshot: Snapshot, topic: Topic, lock: string | undefined): boolean {
  if (topic === "lock") return lock !== undefined && snapshot.details.has(lock);
  if (topic === "locks") return snapshot.rows !== null && !snapshot.isPartial;
  return snapshot[topic] !== null && (topic !== "clients" || snapshot.clients?.isPartial === undefined);
}

/**
 * Combines a read of some topics with the previous state of all others. An incomplete list whose read did not continue
 * is dropped.
 */
export function completed(found: Snapshot, before: Snapshot): Snapshot {
  const { rows, isCut, unreachable, isPartial } = found.rows === null && !before.isPartial ? before : found;
  return {
    ...found,
    ...{ rows, isCut, unreachable, isPartial },
    clients: found.clients ?? (before.clients?.isPartial === true ? null : before.clients),
    semaphores: found.semaphores ?? before.semaphores,
    elections: found.elections ?? before.elections,
    redis: found.redis ?? before.redis,
  };
}

/** The difference between two snapshots. Absent topics have not changed. */
export interface Change {
  readonly atMs: number;
  readonly store?: StoreView;
  readonly locks?: Extent & {
    readonly changed: readonly LockRow[];
    readonly removed: readonly LockRow[];
    /** Whether the extent has changed. */
    readonly isExtentNew: boolean;
  };
  readonly details?: ReadonlyMap<string, LockDetail>;
  readonly clients?: ClientsState;
  readonly semaphores?: SemaphoresState;
  readonly elections?: ElectionsState;
  readonly redis?: NonNullable<Snapshot["redis"]>;
}

/** The difference between two snapshots; undefined if there is none. */
export function changeOf(before: Snapshot, after: Snapshot): Change | undefined {
  const change = {
    ...locksChanged(before, after),
    ...detailsChanged(before, after),
    ...wholeChanged("clients", before, after),
    ...wholeChanged("semaphores", before, after),
    ...wholeChanged("elections", before, after),
    ...wholeChanged("redis", before, after),
  };
  return Object.keys(change).length === 0 ? undefined : { atMs: after.atMs, ...change };
}

function locksChanged(before: Snapshot, after: Snapshot): Pick<Change, "locks"> {
  if (after.rows === null) return {};
  const old = before.rows ?? new Map<string, KeptRow>();
  const changed = [...after.rows].flatMap(([id, kept]) => (old.get(id)?.text === kept.text ? [] : [kept.row]));
  const removed = [...old].flatMap(([id, { row }]) => (after.rows?.has(id) === true ? [] : [row]));
  const { isCut, unreachable } = after;
  const isExtentNew = before.rows === null || before.isCut !== isCut || before.unreachable !== unreachable;
  if (changed.length === 0 && removed.length === 0 && !isExtentNew) return {};
  return { locks: { changed, removed, isCut, unreachable, isExtentNew } };
}

function detailsChanged(before: Snapshot, after: Snapshot): Pick<Change, "details"> {
  const changed = [...after.details].filter(([key, detail]) => !isSame(before.details.get(key), detail));
  return changed.length === 0 ? {} : { details: new Map(changed) };
}

function wholeChanged<Part extends "clients" | "semaphores" | "elections" | "redis">(
  part: Part,
  before: Snapshot,
  after: Snapshot,
): Pick<Change, Part> {
  const now = after[part];
  return (now === null || isSame(before[part], now) ? {} : { [part]: now }) as Pick<Change, Part>;
}

function isSame(left: unknown, right: unknown): boolean {
  return left === right || JSON.stringify(left) === JSON.stringify(right);
}
