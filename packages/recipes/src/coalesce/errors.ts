import { LockError } from "holdfast";
import { quote } from "holdfast/internal";
import type { KeptFailure } from "../failure.js";

/** The run that this call joined failed, or its value could not be shared. Nothing was run here. */
export class CoalesceJoinError extends LockError {
  override readonly name: string = "CoalesceJoinError";

  readonly code = "ERR_LOCK_COALESCE_JOIN";
  /**
   * The error of the run: its name, its message and its own enumerable properties; undefined if the run did not fail.
   */
  readonly failure: KeptFailure | undefined;

  constructor(name: string, failure: KeptFailure | undefined) {
    const why =
      failure === undefined
        ? "whose result is not available: it was too large, could not be encoded, or the run gave up its lease before it ended"
        : `that failed with ${quote(failure.name)}: ${quote(failure.message)}`;
    super(name, `This call joined a run of ${quote(name)} ${why}. Nothing ran here; calling again is safe.`);
    this.failure = failure;
  }
}
