/** What the pages know, what news make of it, and whether that may be called live. Pure, so that it can be tested without a browser. */
import type {
  ClientView,
  ElectionView,
  LockAnswer,
  LockRow,
  RedisAnswer,
  SemaphoreView,
  Stamped,
  StoreView,
  StreamChange,
  StreamState,
  Topic,
} from "../api.js";

/** All that is known now; undefined until it came. A `lock` that is null may no longer be seen. */
export interface Known {
  readonly store?: StoreView | undefined;
  readonly locks?: { readonly rows: ReadonlyMap<string, LockRow>; readonly isCut: boolean } | undefined;
  readonly lock?: LockAnswer | null | undefined;
  readonly clients?: readonly ClientView[] | undefined;
  readonly semaphores?: readonly SemaphoreView[] | undefined;
  readonly elections?: readonly ElectionView[] | undefined;
  readonly redis?: RedisAnswer | undefined;
}

/**
 * How it is kept up to date. `live`: by the stream, and all of the page has come; `loading`: by the stream, and some of it is still
 * being read; `down`: the console answers and Redis does not; `polling`: by asking; `offline`: the console itself does not answer;
 * `stopped`: not at all, because the visitor wants to read in peace.
 */
export type Liveness = "connecting" | "loading" | "live" | "down" | "polling" | "offline" | "stopped";

/** What is known after that. In a whole state, null means that it was not read yet: what was shown last stays. */
export function merged(known: Known, news: StreamState | StreamChange, isWhole: boolean): Known {
  const { locks, v: _v, atMs: _atMs, ...others } = news as StreamChange & Stamped;
  const read = isWhole ? Object.fromEntries(Object.entries(others).filter(([, value]) => value !== null)) : others;
  return { ...known, ...read, ...(locks == null ? {} : { locks: mergedRows(known.locks, locks, isWhole) }) };
}

/** Whether a state has all topics of a page; until then it is being read. */
export function hasAll(topics: readonly Topic[], state: StreamState): boolean {
  return topics.every((topic) => state[topic] != null) && state.locks?.isPartial === undefined;
}

/** What the mark says of a stream that is open. */
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
  return { rows, isCut: news.isCut };
}
