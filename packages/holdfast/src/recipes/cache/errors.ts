import { LockError } from "../../index.js";
import { quote } from "../../internal.js";
import type { KeptFailure } from "../failure.js";

/** The value could not be loaded: other processes tried, as often as they may, and the last one failed with this. Nothing was loaded here. */
export class CacheLoadError extends LockError {
  override readonly name: string = "CacheLoadError";

  readonly code = "ERR_LOCK_CACHE_LOAD";
  /** What the last loader threw: its name, message, and its own enumerable properties. */
  readonly failure: KeptFailure;

  constructor(name: string, failure: KeptFailure) {
    super(
      name,
      `${quote(name)} was not loaded: the last of those who tried failed with ${quote(failure.name)}: ${quote(failure.message)}; nothing was loaded here, and asking again tries again.`,
    );
    this.failure = failure;
  }
}
