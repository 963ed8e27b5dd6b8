/**
 * The data of the pages: how updates are merged, and whether the data counts as live. The functions are pure, so
 * tests need no browser.
 */
import type {
  ClientsState,
  ElectionsState,
  Extent,
  LockAnswer,
  LockRow,
  RedisAnswer,
  SemaphoresState,
  Stamped,
  StoreView,
  StreamChange,
  StreamState,
  Topic,
} from "../api.js";

/** The current data; undefined if not received yet. A `lock` of null means that the visitor may no longer see it. */
export interface Known {
  readonly store?: StoreView | undefined;
  readonly locks?: LocksKnown | undefined;
  readonly lock?: LockAnswer | null | undefined;
  readonly clients?: ClientsState | undefined;
  readonly semaphores?: SemaphoresState | undefined;
  readonly elections?: ElectionsState | undefined;
  readonly redis?: RedisAnswer | undefined;
}

/** The list of locks. */
export interface LocksKnown extends Extent {
  readonly rows: ReadonlyMap<string, LockRow>;
  /** Present while more locks are being read. */
  readonly isPartial?: true;
}

/**
 * How the data is kept up to date.
 * - `connecting`: by the stream, which is being opened or reopened
 * - `live`: by the stream, and all of the page's data has arrived
 * - `loading`: by the stream, and some data is still being read
 * - `down`: the console replies, but cannot use Redis
 * - `polling`: by requests, because there is no stream
 * - `offline`: the console itself does not reply
 * - `stopped`: not at all, because the visitor has paused updates
 */
export type Liveness = "connecting" | "loading" | "live" | "down" | "polling" | "offline" | "stopped";

/**
 * Merges an update. In a complete state, null means that the topic was not read yet, so the previous data stays. The
 * previous data also stays while only part of a list has been read again, so that a complete list does not shrink and
 * grow.
 */
export function merged(known: Known, news: StreamState | StreamChange, isWhole: boolean): Known {
  const { locks, v: _v, atMs: _atMs, ...others } = news as StreamChange & Stamped;
  if (isLess(others.clients, known.clients)) delete (others as { clients?: ClientsState }).clients;
  const read = isWhole ? Object.fromEntries(Object.entries(others).filter(([, value]) => value !== null)) : others;
  const keepsLocks = locks == null || isLess(locks, known.locks);
  return { ...known, ...read, ...(keepsLocks ? {} : { locks: mergedRows(known.locks, locks, isWhole) }) };
}

interface Part {
  readonly isPartial?: true;
}

function isLess(news: Part | object | null | undefined, before: Part | undefined): boolean {
  return (
    news != null &&
    "isPartial" in news &&
    news.isPartial === true &&
    before !== undefined &&
    before.isPartial === undefined
  );
}

/** Whether a state has all topics of a page; until then the page is loading. */
export function hasAll(topics: readonly Topic[], state: StreamState): boolean {
  return topics.every((topic) => state[topic] != null) && !state.locks?.isPartial && !state.clients?.isPartial;
}

/** The liveness to show while the stream is open. */
export function livenessOf(store: StoreView | undefined, isComplete: boolean): "down" | "live" | "loading" {
  if (store?.state === "down") return "down";
  return isComplete ? "live" : "loading";
}

function mergedRows(
  before: Known["locks"],
  news: NonNullable<StreamState["locks"]> | NonNullable<StreamChange["locks"]>,
  isWhole: boolean,
): Known["locks"] {
  const rows = new Map(isWhole ? [] : before?.rows);
  if ("removed" in news) for (const id of news.removed) rows.delete(id);
  for (const row of "changed" in news ? news.changed : news.rows) rows.set(row.id, row);
  const isPartial = "isPartial" in news && news.isPartial;
  return { rows, isCut: news.isCut, unreachable: news.unreachable, ...(isPartial && { isPartial }) };
}
