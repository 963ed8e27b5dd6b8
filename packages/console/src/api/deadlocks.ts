/** Possible deadlocks: `api/deadlocks`. */
import type { KindName, Stamped } from "./document.js";
import type { HolderView, LockRow } from "./locks.js";

/** A hold or a wait that is part of a possible deadlock. */
export interface DeadlockClaimView {
  readonly kind: KindName;
  readonly name: string;
  readonly key: string | null;
  readonly owner: string;
  readonly token: number | null;
  readonly sinceAtMs: number | null;
  readonly label: string | null;
  /** Whether this console can release the lock, as in `LockRow`. */
  readonly needsTopology: LockRow["needsTopology"];
  /** The address of the server that has the lock, as in `LockRow`. */
  readonly onServers: LockRow["onServers"];
}

/**
 * A client that holds one lock and waits for the lock of the next member. The last member waits for the lock of the
 * first.
 */
export interface DeadlockMemberView extends Pick<HolderView, "host" | "pid" | "app"> {
  readonly clientId: string;
  readonly holds: DeadlockClaimView;
  readonly waits: DeadlockClaimView;
}

/** A possible deadlock. Releasing the lock of its first member loses the least work. */
export interface DeadlockView {
  readonly sinceAtMs: number | null;
  readonly members: readonly DeadlockMemberView[];
}

/**
 * Response of GET api/deadlocks. It contains only deadlocks in which the viewer may see every lock. The server searches
 * at most every 10 s, for all viewers together.
 */
export interface DeadlocksAnswer extends Stamped {
  readonly deadlocks: readonly DeadlockView[];
  /** False if there were more locks than the search reads, or if a server did not reply. */
  readonly isComplete: boolean;
}
