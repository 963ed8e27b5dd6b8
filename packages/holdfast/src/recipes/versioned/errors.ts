import { LockError } from "../../index.js";
import { quote } from "../../internal.js";

/** Others wrote each time before this update did. Nothing was written; trying again is safe, and `promoteAfter` helps. */
export class ConflictError extends LockError {
  override readonly name: string = "ConflictError";

  readonly code = "ERR_LOCK_CONFLICT";
  /** How often the function was run. */
  readonly attempts: number;
  /** The version that was in the way last. */
  readonly version: number;

  constructor(name: string, facts: { readonly attempts: number; readonly version: number }) {
    const { attempts, version } = facts;
    super(
      name,
      `${quote(name)} was not updated: others wrote it first in each of ${attempts} attempts, and it has version ${version} now; nothing was written, and trying again is safe.`,
    );
    this.attempts = attempts;
    this.version = version;
  }
}
