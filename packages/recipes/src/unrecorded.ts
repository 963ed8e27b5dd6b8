import { StoreError, type StoreFailure } from "holdfast";
import { quote } from "holdfast/internal";
import { wordsOf } from "./failure.js";

/** The work ended, but the server did not reply. The end of the work may or may not be recorded. */
export class UnrecordedError extends StoreError {
  override readonly name: string = "UnrecordedError";

  /** What the work returned. */
  readonly value: unknown;

  constructor(name: string, failure: StoreFailure, value: unknown) {
    const recorded = failure.mayHaveRun ? "may not be recorded" : "was not recorded";
    super(
      name,
      failure,
      `The work for ${quote(name)} ended, but its result ${recorded} (${quote(wordsOf(failure.cause).message)}). The result is in error.value; the work may run again.`,
    );
    this.value = value;
  }
}
