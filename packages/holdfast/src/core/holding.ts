import type { Forced, LossReason } from "./error-facts.js";
import type { NotHeld } from "./protocol.js";

/** How a release ended, as the server tells it. */
export type Ended = "released" | NotHeld;

/**
 * What a lease stands on: a hold of one claim, or several holds that count as one. It keeps itself alive until
 * it is released, ended or lost.
 */
export interface Holding {
  readonly kind: string;
  readonly lockName: string;
  /** Of a read-write lock: the side that was asked for. */
  readonly mode?: "read" | "write" | undefined;
  readonly owner: string;
  readonly token: number;
  /** Time of the grant by this process's wall clock, in ms since 1970. */
  readonly heldSinceAtMs: number;
  /** Length of the lease that a renewal asks for, in ms. */
  readonly leaseMs: number;

  /** How long it may be trusted from now, in ms; 0 when it is over. Notices the end by itself. */
  validForMs(): number;

  /** How long it has been held, in ms. */
  heldMs(): number;

  /** Begins the lease anew with another length, which later renewals keep. @throws StoreError */
  extend(leaseMs: number): Promise<"extended" | NotHeld>;

  /** Gives the lock back. @throws StoreError */
  release(): Promise<Ended>;

  /** Ends it without a word to the server, and describes it, so that it can go on elsewhere. @throws UnsupportedError */
  handOver(): ExportedLease;

  /** Calls `listener` once when it is lost, or at once if it was lost before. */
  onLost(listener: LossListener): void;
}

/** Told once, with what was said if it was lost by force; and before, of `closing`, when it is not lost but to end soon. */
export type LossListener = (reason: LossReason, forced?: Forced) => void;

/** A lease as plain JSON, for `holdfast.adopt` in another process. */
export interface ExportedLease {
  readonly version: 1;
  readonly kind: string;
  readonly name: string;
  /** The `key` option of the lock, if it had one. */
  readonly key?: string | undefined;
  readonly owner: string;
  readonly token: number;
  /** The last of the tokens that its claim has reserved; absent if that is `token`. */
  readonly reservedTo?: number | undefined;
  readonly leaseMs: number;
  readonly renew: boolean;
  /** What is left of `maxHoldMs`; absent if there is none. */
  readonly maxHoldMs?: number | undefined;
  /** Numbers of the permits held; absent for kinds that do not number them. */
  readonly slots?: readonly number[] | undefined;
  /** What a leader stands for; absent for all other kinds. */
  readonly value?: string | undefined;
  /** Which side of a read-write lock it holds; absent for other kinds. */
  readonly mode?: "read" | "write" | undefined;
}
