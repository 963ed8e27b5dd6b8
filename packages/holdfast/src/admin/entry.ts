/** The state of a lock as shown in lists, in the same form for all kinds. */
import type { BreakReason, Holder, Pause } from "../core/errors.js";
import type { WaitingClaim } from "../core/inspection.js";

/** The kinds that can be listed. A reentrant mutex is listed as a mutex. `redlock` needs several servers. */
export type LockKind =
  | "mutex"
  | "semaphore"
  | "read-write-lock"
  | "election"
  | "count-down-latch"
  | "barrier"
  | "redlock";

/** All kinds, in the order in which `lookUp` returns locks that share a name. */
export const LOCK_KINDS: readonly LockKind[] = [
  "mutex",
  "semaphore",
  "read-write-lock",
  "election",
  "count-down-latch",
  "barrier",
  "redlock",
];

/** How a lock is held: `exclusive`, by a single holder, or `shared` with other holders. */
export type LockMode = "exclusive" | "shared";

/**
 * The state of a lock.
 *
 * - `held`: it has a holder, or some of its permits are held
 * - `awaited`: it has waiters but no holder, for example because its holder crashed, or because they wait for a
 *   condition
 * - `paused`: an operator has paused it; `pause` names the operator, and `holders` lists the holders whose leases
 *   continue
 * - `counting`: a latch whose count is above zero
 * - `gathering`: a barrier at which some parties have arrived
 * - `broken`: a barrier whose last generation broke, or a lock that cannot be read; see `unreadable`
 * - `free`: none of the above
 */
export type LockState = "held" | "awaited" | "paused" | "counting" | "gathering" | "broken" | "free";

/** A holder of a lock. */
export interface EntryHolder extends Holder {
  /** How it holds the lock. */
  readonly mode: LockMode;
  /** The number of semaphore permits that it holds. 1 for all other kinds. */
  readonly permits: number;
  /** The slot numbers of its permits. Empty if they have none. */
  readonly slots: readonly number[];
  /**
   * Server time at which the holder's client last wrote its record, in ms since 1970, if that was over a minute ago. A
   * client that holds a lock writes its record every 20 s, so this client has crashed or is disconnected. The hold ends
   * with its lease. Undefined if the client is alive, or if the server has no record of it.
   */
  readonly goneSinceAtMs: number | undefined;
}

/** A waiter of a lock. For a barrier, a party that has arrived. */
export interface EntryWaiter extends WaitingClaim {
  /** How it wants to hold the lock. */
  readonly mode: LockMode;
  /** The number of semaphore permits that it requests. 1 for all other kinds. */
  readonly permits: number;
  /** Server time at which it joined the queue, in ms since 1970. Undefined if the queue does not record it. */
  readonly sinceAtMs: number | undefined;
  /** When its client last wrote its record; see `EntryHolder.goneSinceAtMs`. */
  readonly goneSinceAtMs: number | undefined;
}

/** A condition of a mutex that has waiters. */
export interface EntryCondition {
  /** The name of the condition. */
  readonly name: string;
  /** The number of waiters for the condition. `waiters` may list fewer. */
  readonly waiterCount: number;
  /** The first 100 waiters, in the order in which they will be signaled. */
  readonly waiters: readonly EntryWaiter[];
}

/** One of several independent servers. */
export interface EntryServer {
  /** The position of the server in the `redlock` option of this Holdfast, from 0. */
  readonly index: number;
  /** Its `host:port`, or the path of its Unix socket. Undefined if the client library does not say. */
  readonly address: string | undefined;
}

/** A snapshot of the state of a lock. The state may have changed by the time you read it. */
export interface LockEntry {
  /** The kind of the lock. */
  readonly kind: LockKind;
  /** The name of the lock. */
  readonly name: string;
  /** The `key` option of a mutex, if set. `name` is then equal to it, because the server does not store the name. */
  readonly key: string | undefined;
  /** The state of the lock. */
  readonly state: LockState;
  /** How it is held. Undefined if it has no holder. */
  readonly mode: LockMode | undefined;
  /** The fencing token of the current grant, or of the last one. Undefined if the server has none. */
  readonly token: number | undefined;
  /** The holders. For a semaphore or read-write lock, at most the 1,000 whose leases end first, in that order. */
  readonly holders: readonly EntryHolder[];
  /** The number of waiters. `waiters` may list fewer. */
  readonly waiterCount: number;
  /** The first 100 waiters, in queue order. */
  readonly waiters: readonly EntryWaiter[];
  /**
   * For a semaphore, the capacity and the number of permits held. After `resize` lowers the capacity, `used` may exceed
   * `limit` for a while. `limit` is undefined if the server has no record of it.
   */
  readonly permits: { readonly limit: number | undefined; readonly used: number } | undefined;
  /** The current pause. Undefined if the lock is not paused. */
  readonly pause: Pause | undefined;
  /** The label of the pause if the lock is paused, otherwise the label of the first holder. */
  readonly label: string | undefined;
  /** For a mutex, the conditions that were found. `lookUpConditions` and lists search for them; `lookUp` does not. */
  readonly conditions: readonly EntryCondition[];
  /** For an election that has a leader: the value and the term of the leader. */
  readonly leader: { readonly value: string; readonly term: number } | undefined;
  /** For a latch that has been set: its remaining count and its initial count. */
  readonly count: { readonly left: number; readonly initial: number } | undefined;
  /** For a barrier that has been used: its parties, current generation, and why that generation broke, if it did. */
  readonly barrier:
    | { readonly parties: number | undefined; readonly generation: number; readonly broken: BreakReason | undefined }
    | undefined;
  /**
   * Present if the lock cannot be read. The rest of its state is then unknown. Usually, one of its keys has a
   * different Redis type than Holdfast expects, and the lock cannot be acquired until that key is removed. `keys` lists
   * the keys of the wrong type, or all candidates if it is unclear which key is wrong.
   */
  readonly unreadable?: {
    readonly keys: readonly string[];
    /**
     * Why the lock cannot be read, if the cause is not the type of a key: the error from the server, or, for a Redlock
     * that may be held, the reply of each server. `keys` is then empty.
     */
    readonly reason?: string;
    /** Present for a Redlock if too few servers replied to tell whether it is held. */
    readonly mayBeHeld?: true;
  };
  /**
   * Present if the lock belongs to clients that use a different topology, so this Holdfast sees only part of it and
   * cannot release it:
   *
   * - `redlock`: a Redlock on several independent servers. This Holdfast uses only one of them, and the entry shows the
   *   state on that server, so the holder may lack a majority
   * - `single-server`: a lock of clients that use only one of the servers of this Holdfast
   */
  readonly needsTopology?: "redlock" | "single-server";
  /** Present if `needsTopology` is `single-server` and only one server has a lock of this name: that server. */
  readonly server?: EntryServer;
  /**
   * Present if `needsTopology` is `single-server` and several servers have a lock of this name. These are different
   * locks: `perServer` has the lock of each server, without `conditions`. The entry itself shows the holders and
   * waiters of all of them, and otherwise the state of the first.
   */
  readonly perServer?: readonly LockEntry[];
  /**
   * Present for a held Redlock if this Holdfast uses all its servers: the number of servers on which the holder has the
   * lock, the number that replied, and the total. The holder keeps the lock as long as it has more than half of the
   * total.
   */
  readonly servers?: { readonly holding: number; readonly answered: number; readonly total: number };
}
