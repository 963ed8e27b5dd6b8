import { LockError } from "holdfast";
import { quote } from "holdfast/internal";

/**
 * After `resign` is called, the leader's signal aborts with this error as its reason. The work must stop now. The
 * leader keeps its lease until the work has settled.
 */
export class ResignedError extends LockError {
  override readonly name: string = "ResignedError";

  readonly code = "ERR_LOCK_RESIGNED";

  constructor(lockName: string) {
    super(
      lockName,
      `The term in the election ${quote(lockName)} is ending, because resign() was called. Stop the work; Holdfast keeps the lease until the work ends.`,
    );
  }
}
