/** What may be done, and what is to be said for it: `api/actions/…`. Every body says why. */
import type { KindName, Stamped } from "./document.js";
import type { LockAnswer } from "./locks.js";

/** What every action says why: 1 to 256 bytes. It goes to the audit line, and to the holder's error. */
interface Reasoned {
  readonly reason: string;
}

/** Which lock, as its row says. */
export interface LockId {
  readonly kind: KindName;
  readonly name: string;
  /** Of a mutex that has one. */
  readonly key?: string | null;
}

/** Both facts as the page showed them; `token` null only for a holder that has none. 409 `stale` when it has another holder. */
export interface ReleaseBody extends Reasoned, LockId {
  readonly owner: string;
  readonly token: number | null;
}

/** All that a dead client holds. 409 `stale` if it lives. */
export interface ReleaseClientBody extends Reasoned {
  readonly clientId: string;
}

/** `untilAtMs` null: until somebody resumes it. 409 `already-paused` if it is. */
export interface PauseBody extends Reasoned, LockId {
  readonly untilAtMs: number | null;
}

/** 409 `stale` if another pause is in force, 409 `not-paused` if none is. */
export interface ExtendPauseBody extends PauseBody {
  readonly pauseId: string;
}

/** As above. */
export interface ResumeBody extends Reasoned, LockId {
  readonly pauseId: string;
}

/** `from`: the number that the page showed; 409 `stale` when it is another. */
export interface ResizeBody extends Reasoned {
  readonly name: string;
  readonly from: number;
  readonly permits: number;
}

/** 409 `stale` when the term is over. */
export interface ResignBody extends Reasoned {
  readonly name: string;
  readonly term: number;
}

/** What an action did. */
export interface ActionAnswer extends Stamped {
  readonly action: string;
  /** One sentence: what was done, to whom, and who is next. */
  readonly message: string;
  /** The state after it, if it could be read; null otherwise and for `release-client`. */
  readonly lock: LockAnswer | null;
}
