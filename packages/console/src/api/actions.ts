/** The actions: `api/actions/…`. Every request body gives a reason. */
import type { KindName, Stamped } from "./document.js";
import type { LockAnswer } from "./locks.js";

/** The reason for an action, 1 to 256 bytes. It goes into the audit line and into the holder's error. */
interface Reasoned {
  readonly reason: string;
}

/** Identifies a lock, with the values from its row. */
export interface LockId {
  readonly kind: KindName;
  readonly name: string;
  /** The `key` option of a mutex that has one. */
  readonly key?: string | null;
}

/**
 * Owner and token as the page showed them; `token` is null only for a holder without a token. 409 `stale` if the lock
 * has another holder.
 */
export interface ReleaseBody extends Reasoned, LockId {
  readonly owner: string;
  readonly token: number | null;
}

/** Releases all locks of a client that is gone. 409 `stale` if it is not known to be gone. */
export interface ReleaseClientBody extends Reasoned {
  readonly clientId: string;
}

/** `untilAtMs` null: until it is resumed. 409 `already-paused` if the lock is paused. */
export interface PauseBody extends Reasoned, LockId {
  readonly untilAtMs: number | null;
}

/** 409 `stale` if another pause is in force, 409 `not-paused` if there is none. */
export interface ExtendPauseBody extends PauseBody {
  readonly pauseId: string;
}

/** Errors as for `ExtendPauseBody`. */
export interface ResumeBody extends Reasoned, LockId {
  readonly pauseId: string;
}

/** `from` is the number that the page showed; 409 `stale` if the current number differs. */
export interface ResizeBody extends Reasoned {
  readonly name: string;
  readonly from: number;
  readonly permits: number;
}

/** 409 `stale` if the term is over. */
export interface ResignBody extends Reasoned {
  readonly name: string;
  readonly term: number;
}

/** The response to an action. */
export interface ActionAnswer extends Stamped {
  readonly action: string;
  /** One sentence: what was done, to which holder, and who is next. */
  readonly message: string;
  /** The state after the action; null if it could not be read, and for `release-client`. */
  readonly lock: LockAnswer | null;
}
