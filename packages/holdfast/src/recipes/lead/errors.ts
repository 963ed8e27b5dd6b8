import { LockError } from "../../index.js";
import { quote } from "../../internal.js";

/**
 * The reason of a leader's signal when somebody called `resign`. The term is to end, and is not over: it is held until the work has
 * settled.
 */
export class ResignedError extends LockError {
  override readonly name: string = "ResignedError";

  readonly code = "ERR_LOCK_RESIGNED";

  constructor(lockName: string) {
    super(
      lockName,
      `The term in the election ${quote(lockName)} is to end: it was resigned, and is held until its work has settled.`,
    );
  }
}
