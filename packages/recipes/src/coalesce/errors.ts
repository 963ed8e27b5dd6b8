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
        ? "is done, but its value was too large or could not be encoded"
        : `failed with ${quote(failure.name)}: ${quote(failure.message)}`;
    super(name, `The run of ${quote(name)} that this call had joined ${why}; nothing was run here.`);
    this.failure = failure;
  }
}
