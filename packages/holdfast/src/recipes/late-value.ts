/** A lease that was lost under work that succeeded: what it found need not be lost too. */
import { type Forced, LeaseLostError, type OverReason } from "../core/errors.js";

/** The work ended with a value, but its lease was over by then: somebody else may have worked beside it. */
export class LateValueError extends LeaseLostError {
  /** What the work returned. */
  readonly value: unknown;

  constructor(
    lockName: string,
    facts: {
      readonly reason: OverReason;
      readonly token: number;
      readonly owner: string;
      readonly forced?: Forced | undefined;
      readonly value: unknown;
    },
  ) {
    super(lockName, facts);
    this.value = facts.value;
  }
}
