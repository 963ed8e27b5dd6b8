/** How a wait can end. */
import type { Grant, State } from "./protocol.js";
import type { Moment } from "./validity.js";

/** A grant, and the earliest moment at which its lease can have begun. */
export interface Granted extends Grant {
  readonly setAt: Moment;
  /** How long the lease lasts unless it is confirmed, in ms; undefined if it lasts for all of `claim.leaseMs`. */
  readonly provisionalMs?: number | undefined;
  /** Whether it came by message, so that others wanted the lock as well. */
  readonly isHandedOver?: boolean | undefined;
  readonly waitedMs: number;
  /** The call that it is for, as events name it. */
  readonly call: object;
  /** Whether a request of this claim may still be under way, to take the lock or queue for it once more. */
  readonly mayStillRun: () => boolean;
}

/** Of a claim whose requests are all answered, as most are: a hold need not keep its waiter to find that out. */
export const NOTHING_RUNS = (): boolean => false;

/** The wait ended without a grant, and without a trace. `state` is what the server said just before, if it was a wait. */
export interface TimedOut {
  readonly state: State | undefined;
  /** Why the server did not say it, if it was asked. */
  readonly unseen?: unknown;
}

/** How a wait ends; each is called at most once, and one of the last three is. */
export interface WaitEnds {
  /** The first answer was not a grant, or there was none: it will take a while. */
  readonly waiting?: (() => void) | undefined;
  /** Called in the turn in which the grant arrives, so that no message that follows it finds nobody. */
  readonly granted: (granted: Granted) => void;
  readonly timedOut: (end: TimedOut) => void;
  readonly failed: (error: unknown) => void;
}
