/**
 * One side of a lock that Node and Java share: Holdfast, a model of Java, or a real Java service. A check runs
 * with any two of them.
 */

/** Type and name of a lock. */
export interface Locked {
  readonly type: LockType;
  readonly name: string;
}

/** Redisson's lock types. */
export type LockType = "lock" | "fenced" | "spin" | "fair" | "read" | "write";

export const LOCK_TYPES: readonly LockType[] = ["lock", "fenced", "spin", "fair", "read", "write"];

/** Options of an acquire. */
export interface Asked {
  /** 0 makes one attempt. */
  readonly waitMs: number;
  /** Fixed lease length. Without it, the hold is renewed until it is released. */
  readonly leaseMs?: number;
}

/** A hold. */
export interface Held {
  /** Fencing token, if the lock type has one that both sides share. */
  readonly token: number | undefined;
  /** Resolves to whether the lock was still held. */
  unlock(): Promise<boolean>;
}

export interface Side {
  readonly label: string;
  /** Resolves to undefined if the wait timed out. */
  acquire(what: Locked, asked: Asked): Promise<Held | undefined>;
  isLocked(what: Locked): Promise<boolean>;
  /** Force-releases the lock. Resolves to false if it was free. */
  forceUnlock(what: Locked): Promise<boolean>;
  /** Simulates a crash: releases nothing and stops all renewals. */
  die(): Promise<void>;
  /** Shuts down cleanly, also after `die`. */
  close(): Promise<void>;
}

/** Settings of a side. */
export interface Settings {
  readonly port: number;
  /** Lease length of holds that are renewed. */
  readonly watchdogMs: number;
  /** Prefix of every name. */
  readonly prefix?: string;
  /** How far the side's clock is ahead. A side without its own clock ignores it. */
  readonly clockAheadMs?: number;
  readonly fairWaitMs?: number;
}

/** Makes sides. */
export interface Maker {
  readonly label: string;
  make(settings: Settings): Promise<Side>;
}
