import { quote } from "../../core/error-texts.js";
import { LeaseLostError, LockError, type OverReason } from "../../core/errors.js";

/**
 * The reason of a leader's signal when somebody called `resign`. The term is to end, and is not over: it is held until the work has
 * settled.
 */
export class ResignedError extends LockError {
  readonly code = "ERR_LOCK_RESIGNED";

  constructor(lockName: string) {
    super(
      lockName,
      `The term in the election ${quote(lockName)} is to end: it was resigned, and is held until its work has settled.`,
    );
  }
}

/** The work of a leader ended after its lease: it may have overlapped with that of the next one. */
export class LeadLostError extends LeaseLostError {
  /** What the work returned. */
  readonly value: unknown;

  constructor(
    lockName: string,
    facts: { readonly reason: OverReason; readonly token: number; readonly owner: string; readonly value: unknown },
  ) {
    super(lockName, facts);
    this.value = facts.value;
  }
}
