/** The data that the judge keeps about a lease, and its verdict on a run. */
import type { Lease } from "holdfast";
import type { Attempt } from "./attempt.js";
import type { Draft } from "./draft.js";
import type { SimulatedProcess } from "./process.js";

/** Something that must not happen. */
export interface Violation {
  /** Id of the property, as the reference names it. */
  readonly property: string;
  readonly atMs: number;
  readonly text: string;
}

/** A present or past lease. */
export interface View {
  readonly attempt: Attempt | undefined;
  readonly process: SimulatedProcess;
  readonly lease: Lease;
  /** Of the acquire whose grant it goes on with, if it was adopted. */
  readonly grantId?: number;
  /** The record of the acquire that it comes from. */
  readonly operation: Draft;
  /** How many leases its claim had before: more than none if several callers share it. */
  readonly turn: number;
  /** When something gave it back that is not the release of this lease, such as that of another that shares its hold. */
  givenBackMs?: number;
  /** The lease itself; of several that count as one, the one of this lock. */
  readonly own: Lease;
  readonly lockName: string;
  token: number;
  readonly limit: number;
  weight: number;
  /** Whether it goes on by itself for as long as it is held. */
  readonly isRenewed: boolean;
  /** Its holder has ended it. From then on others may hold, and it says nothing of itself any more. */
  isOver: boolean;
  /**
   * Somebody has begun to end it by force. From then on others may hold; but the request may come late, or find nothing, so the
   * lease goes on to say what it is.
   */
  isTaken: boolean;
  /** Somebody has tried to end it by force, or a server may have forgotten it, so it may be told that it is gone. */
  mayBeTaken: boolean;
  readonly grantedMs: number;
  /** It said that it was over. */
  wasFalse: boolean;
  /** If it says nothing else before, it must have told its loss by then. */
  lossDueMs: number;
}
