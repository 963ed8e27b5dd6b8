/** The event stream of a page: `api/events`. */
import type { ClientsState } from "./clients.js";
import type { Stamped } from "./document.js";
import type { ElectionsState } from "./elections.js";
import type { Extent, LockAnswer, LockRow } from "./locks.js";
import type { RedisAnswer, StoreView } from "./redis.js";
import type { SemaphoresState } from "./semaphores.js";

/** A topic that a page may subscribe to. `store` is always included. `lock` needs `kind` and `name` in the query. */
export type Topic = "locks" | "lock" | "clients" | "semaphores" | "elections" | "redis";

/**
 * The stream. Each event has an id. After a lost connection, EventSource sends back the last id (a page that opens a
 * new stream may send it as `lastEventId` in the query). The page then gets the events that it missed, or `state` if
 * they are no longer available.
 *
 * | event | data | |
 * |---|---|---|
 * | `state` | StreamState | the complete state of all topics: replace everything |
 * | `change` | StreamChange | the difference from the previous event |
 * | `beat` | {} | every 15 s, without an id: the stream is still alive |
 * | `end` | {} | signed out, or the console is closing: do not reconnect before api/session replies |
 *
 * A page that has received nothing for longer than two beats is no longer live.
 */
export interface StreamEvents {
  readonly state: StreamState;
  readonly change: StreamChange;
  readonly beat: Record<string, never>;
  readonly end: Record<string, never>;
}

/**
 * Event `state`. A topic that was not requested is absent; one that was not read yet, or cannot be read now, is null.
 */
export interface StreamState extends Stamped {
  readonly store: StoreView;
  readonly locks?: LocksState | null;
  readonly lock?: LockAnswer | null;
  readonly clients?: ClientsState | null;
  readonly semaphores?: SemaphoresState | null;
  readonly elections?: ElectionsState | null;
  readonly redis?: RedisAnswer | null;
}

/** All locks that the console follows. */
export interface LocksState extends Extent {
  readonly rows: readonly LockRow[];
  /** Present while more locks are being read: another `state` follows. */
  readonly isPartial?: true;
}

/** Event `change`. Absent topics have not changed; topics other than `locks` are sent completely. */
export interface StreamChange extends Stamped {
  readonly store?: StoreView;
  readonly locks?: Extent & {
    readonly changed: readonly LockRow[];
    readonly removed: readonly string[];
  };
  readonly lock?: LockAnswer | null;
  readonly clients?: ClientsState;
  readonly semaphores?: SemaphoresState;
  readonly elections?: ElectionsState;
  readonly redis?: RedisAnswer;
}
