import { StoreError, type StoreFailure } from "holdfast";

/** The work ended, but the server did not reply. The end of the work may or may not be recorded. */
export class UnrecordedError extends StoreError {
  override readonly name: string = "UnrecordedError";

  /** What the work returned. */
  readonly value: unknown;

  constructor(name: string, failure: StoreFailure, value: unknown) {
    super(name, failure);
    this.value = value;
  }
}
