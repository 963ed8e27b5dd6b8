import { LockError } from "holdfast";
import { quote } from "holdfast/internal";
import type { KeptFailure } from "../failure.js";

/**
 * Other processes tried to load the value, and the last allowed attempt failed. Nothing was loaded here; retrying is
 * safe.
 */
export class CacheLoadError extends LockError {
  override readonly name: string = "CacheLoadError";

  readonly code = "ERR_LOCK_CACHE_LOAD";
  /** The error of the last loader: its name, its message and its own enumerable properties. */
  readonly failure: KeptFailure;

  constructor(name: string, failure: KeptFailure) {
    super(
      name,
      `${quote(name)} was not loaded: the last allowed attempt, in another process, failed with ${quote(failure.name)}: ${quote(failure.message)}. Calling again is safe.`,
    );
    this.failure = failure;
  }
}
