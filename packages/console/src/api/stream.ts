/** What a page follows: `api/events`. */
import type { ClientView } from "./clients.js";
import type { Stamped } from "./document.js";
import type { ElectionView } from "./elections.js";
import type { LockAnswer, LockRow } from "./locks.js";
import type { RedisAnswer, StoreView } from "./redis.js";
import type { SemaphoreView } from "./semaphores.js";

/** What a page may follow. `store` comes always. `lock` needs `kind` and `name` in the query. */
export type Topic = "locks" | "lock" | "clients" | "semaphores" | "elections" | "redis";

/**
 * The stream. Each event has an id; EventSource sends the last one back after a lost connection (a page that opens a new one
 * may put it into the query as `lastEventId`), and gets what it missed, or `state` if that is too long ago.
 *
 * | event | data | |
 * |---|---|---|
 * | `state` | StreamState | the whole of all topics: replace everything |
 * | `change` | StreamChange | what is different since the event before |
 * | `beat` | {} | every 15 s, without an id: the stream is still there |
 * | `end` | {} | signed out, or the console is closing: do not reconnect before api/session answers |
 *
 * A page to which nothing has come for longer than two beats is no longer live.
 */
export interface StreamEvents {
  readonly state: StreamState;
  readonly change: StreamChange;
  readonly beat: Record<string, never>;
  readonly end: Record<string, never>;
}

/** Event `state`. A topic that was not asked for is absent; one that was not read yet, or cannot be read now, is null. */
export interface StreamState extends Stamped {
  readonly store: StoreView;
  readonly locks?: LocksState | null;
  readonly lock?: LockAnswer | null;
  readonly clients?: readonly ClientView[] | null;
  readonly semaphores?: readonly SemaphoreView[] | null;
  readonly elections?: readonly ElectionView[] | null;
  readonly redis?: RedisAnswer | null;
}

/** All locks, as far as the console follows them. */
export interface LocksState {
  readonly rows: readonly LockRow[];
  /** True if there are more than it follows (10,000): use api/locks with a filter and a cursor. */
  readonly isCut: boolean;
  /** Present if these are the first locks that were read, and all of them come next, as another `state`. */
  readonly isPartial?: true;
}

/** Event `change`. What is absent has not changed; other topics than `locks` come whole. */
export interface StreamChange extends Stamped {
  readonly store?: StoreView;
  readonly locks?: {
    readonly changed: readonly LockRow[];
    readonly removed: readonly string[];
    readonly isCut: boolean;
  };
  readonly lock?: LockAnswer | null;
  readonly clients?: readonly ClientView[];
  readonly semaphores?: readonly SemaphoreView[];
  readonly elections?: readonly ElectionView[];
  readonly redis?: RedisAnswer;
}
