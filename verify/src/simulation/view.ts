/** The data that the judge keeps about a lease, and its verdict on a run. */
import type { Lease } from "holdfast";
import type { Attempt } from "./attempt.js";
import type { Draft } from "./draft.js";
import type { SimulatedProcess } from "./process.js";

/** A violated property. */
export interface Violation {
  /** The id of the property in the reference. */
  readonly property: string;
  readonly atMs: number;
  readonly text: string;
}

/** A current or past lease. */
export interface View {
  readonly attempt: Attempt | undefined;
  readonly process: SimulatedProcess;
  readonly lease: Lease;
  /** For an adopted lease, the id of the acquire whose grant it continues. */
  readonly grantId?: number;
  /** The record of its acquire. */
  readonly operation: Draft;
  /** The number of earlier leases of its claim; above 0 if callers share the claim. */
  readonly turn: number;
  /** When it was released other than through this lease, for example through another lease of the same hold. */
  givenBackMs?: number;
  /** The lease itself; for a multi-lock, the lease of this member. */
  readonly own: Lease;
  readonly lockName: string;
  token: number;
  readonly limit: number;
  weight: number;
  /** Whether it is renewed automatically while it is held. */
  readonly isRenewed: boolean;
  /** Whether its holder has ended it. From then on others may hold, and its validity is not checked. */
  isOver: boolean;
  /**
   * Whether a forced release has begun. From then on others may hold. But the request may be late, or may find
   * nothing, so the validity of the lease is still checked.
   */
  isTaken: boolean;
  /** Whether a forced release was attempted, or a server may have lost the lease, so that its loss may be reported. */
  mayBeTaken: boolean;
  readonly grantedMs: number;
  /** Whether it has reported that it has ended. */
  wasFalse: boolean;
  /** The time by which it must have reported its loss, unless its state changes before. */
  lossDueMs: number;
}
