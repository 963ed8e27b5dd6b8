/** What a look at a lock tells, the same for every kind: one row of a list. */
import type { BreakReason, Holder, Pause, WaitingClaim } from "../index.js";

/** The kinds that can be listed. A reentrant mutex is the mutex of its name; `redlock` is on several servers. */
export type LockKind =
  | "mutex"
  | "semaphore"
  | "read-write-lock"
  | "election"
  | "count-down-latch"
  | "barrier"
  | "redlock";

/** All of them, in the order in which a list shows those of one name. */
export const LOCK_KINDS: readonly LockKind[] = [
  "mutex",
  "semaphore",
  "read-write-lock",
  "election",
  "count-down-latch",
  "barrier",
  "redlock",
];

/** Alone, or together with others of the same mode. */
export type LockMode = "exclusive" | "shared";

/**
 * What goes on with a name.
 *
 * - `held`: somebody holds it, or a part of its permits
 * - `awaited`: nobody holds it, and somebody waits, as for a condition, or for a holder that has just died
 * - `paused`: a person keeps it from being granted; see `pause` for who, and `holders` for those who go on
 * - `counting`: a latch above zero
 * - `gathering`: a barrier at which somebody has arrived
 * - `broken`: a barrier whose last generation broke; or a lock that cannot be read, see `unreadable`
 * - `free`: nothing of these
 */
export type LockState = "held" | "awaited" | "paused" | "counting" | "gathering" | "broken" | "free";

/** Somebody who holds it. */
export interface EntryHolder extends Holder {
  readonly mode: LockMode;
  /** How many permits of a semaphore; 1 for all other kinds. */
  readonly permits: number;
  /** Numbers of the permits, if the kind numbers them. */
  readonly slots: readonly number[];
}

/** Somebody who waits. Of a barrier: who has arrived. */
export interface EntryWaiter extends WaitingClaim {
  readonly mode: LockMode;
  /** How many permits of a semaphore it asks for; 1 for all other kinds. */
  readonly permits: number;
  /** Since when, by the server's clock, in ms since 1970; undefined where the queue does not say. */
  readonly sinceAtMs: number | undefined;
}

/** A condition of a mutex for which somebody waits. */
export interface EntryCondition {
  readonly name: string;
  readonly waiterCount: number;
  /** The first 100, the one that is signalled next at the front. */
  readonly waiters: readonly EntryWaiter[];
}

/** One lock as it is now. A snapshot: it may have changed when you read it. */
export interface LockEntry {
  readonly kind: LockKind;
  readonly name: string;
  /** The `key` option of a mutex; it then stands in `name` too, since the server does not know the name. */
  readonly key: string | undefined;
  readonly state: LockState;
  /** How it is held; undefined if nobody does. */
  readonly mode: LockMode | undefined;
  /** Fencing token of the present grant, or of the last one; undefined if none is on record. */
  readonly token: number | undefined;
  /** Of a semaphore or read-write lock the first 1,000, the one whose lease ends first at the front. */
  readonly holders: readonly EntryHolder[];
  readonly waiterCount: number;
  /** The first 100, next one first. */
  readonly waiters: readonly EntryWaiter[];
  /** Of a semaphore. `used` is more than `limit` for a while, if it was made smaller; `limit` is undefined if none is on record. */
  readonly permits: { readonly limit: number | undefined; readonly used: number } | undefined;
  readonly pause: Pause | undefined;
  /** What the pause, or else the first holder, says it is for. */
  readonly label: string | undefined;
  /** Of a mutex, as far as they were found: `lookUpConditions` and lists look for them, `lookUp` does not. */
  readonly conditions: readonly EntryCondition[];
  /** Of an election that somebody leads. */
  readonly leader: { readonly value: string; readonly term: number } | undefined;
  /** Of a latch that was set. */
  readonly count: { readonly left: number; readonly initial: number } | undefined;
  /** Of a barrier that was used. */
  readonly barrier:
    | { readonly parties: number | undefined; readonly generation: number; readonly broken: BreakReason | undefined }
    | undefined;
  /**
   * Of a lock that cannot be read, since a key of it is of another type than ours: nobody gets it until that key is gone, and
   * nothing else in this entry is known. `keys` are those of another type; several where it cannot be told which one it is.
   */
  readonly unreadable?: { readonly keys: readonly string[] };
}
