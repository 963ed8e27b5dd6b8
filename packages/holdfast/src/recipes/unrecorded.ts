import { StoreError, type StoreFailure } from "../index.js";

/** The work ended, and the server did not answer: that it was done may have been recorded, or not. */
export class UnrecordedError extends StoreError {
  override readonly name: string = "UnrecordedError";

  /** What the work returned. */
  readonly value: unknown;

  constructor(name: string, failure: StoreFailure, value: unknown) {
    super(name, failure);
    this.value = value;
  }
}
