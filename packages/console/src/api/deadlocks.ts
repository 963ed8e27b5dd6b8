/** Possible deadlocks: `api/deadlocks`. */
import type { KindName, Stamped } from "./document.js";
import type { HolderView } from "./locks.js";

/** A hold or a wait of a possible deadlock. */
export interface DeadlockClaimView {
  readonly kind: KindName;
  readonly name: string;
  readonly key: string | null;
  readonly owner: string;
  readonly token: number | null;
  readonly sinceAtMs: number | null;
  readonly label: string | null;
}

/** A client that holds a lock and waits for the lock of the next one; the last waits for the lock of the first. */
export interface DeadlockMemberView extends Pick<HolderView, "host" | "pid" | "app"> {
  readonly clientId: string;
  readonly holds: DeadlockClaimView;
  readonly waits: DeadlockClaimView;
}

/** A possible deadlock. To release the lock that its first member holds loses the least work. */
export interface DeadlockView {
  readonly sinceAtMs: number | null;
  readonly members: readonly DeadlockMemberView[];
}

/** GET api/deadlocks: those whose locks may all be seen. Searched at most once in 10 s, whatever the number of viewers. */
export interface DeadlocksAnswer extends Stamped {
  readonly deadlocks: readonly DeadlockView[];
  /** False if there are more locks than were read, or servers that did not reply. */
  readonly isComplete: boolean;
}
