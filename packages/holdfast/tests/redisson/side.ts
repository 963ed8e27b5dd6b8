/**
 * One side of a lock that Node and Java share, as the checks call it: this library, a model of a Java service, or the real
 * one. A check names what one side does and what the other must see, and runs with any two of them.
 */

/** What is locked. */
export interface Locked {
  readonly type: LockType;
  readonly name: string;
}

/** The locks of Redisson that are held one way or the other. */
export type LockType = "lock" | "fenced" | "spin" | "fair" | "read" | "write";

/** All of them. */
export const LOCK_TYPES: readonly LockType[] = ["lock", "fenced", "spin", "fair", "read", "write"];

/** How it is asked for. */
export interface Asked {
  /** 0 makes one attempt. */
  readonly waitMs: number;
  /** For so long and no longer; renewed until it is given back, if it is not said. */
  readonly leaseMs?: number;
}

/** A hold. */
export interface Held {
  /** Fencing token, where the type has one that both sides count. */
  readonly token: number | undefined;
  /** Whether it was still held. */
  unlock(): Promise<boolean>;
}

/** See the file header. */
export interface Side {
  readonly label: string;
  /** Undefined if it was not had in time. */
  acquire(what: Locked, asked: Asked): Promise<Held | undefined>;
  isLocked(what: Locked): Promise<boolean>;
  /** Takes it away from whoever has it; false if nobody has. */
  forceUnlock(what: Locked): Promise<boolean>;
  /** Ends as a crash does: nothing is given back, and nothing renewed any more. */
  die(): Promise<void>;
  /** Ends in an orderly way, dead or not. */
  close(): Promise<void>;
}

/** How a side is made on the server at that port. */
export interface Settings {
  readonly port: number;
  /** Lease of what is renewed. */
  readonly watchdogMs: number;
  /** What goes before every name. */
  readonly prefix?: string;
  /** Of the clock of that side; of no account for one that has none. */
  readonly clockAheadMs?: number;
  readonly fairWaitMs?: number;
}

/** Makes sides. */
export interface Maker {
  readonly label: string;
  make(settings: Settings): Promise<Side>;
}
