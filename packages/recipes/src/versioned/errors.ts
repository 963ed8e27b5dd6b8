import { LockError } from "holdfast";
import { quote } from "holdfast/internal";

/**
 * In every attempt, another writer wrote first. This update wrote nothing. Retrying is safe; set `promoteAfter` to
 * reduce conflicts.
 */
export class ConflictError extends LockError {
  override readonly name: string = "ConflictError";

  readonly code = "ERR_LOCK_CONFLICT";
  /** The number of attempts, each of which ran the function once. */
  readonly attempts: number;
  /** The version on the server at the last conflict. */
  readonly version: number;

  constructor(name: string, facts: { readonly attempts: number; readonly version: number }) {
    const { attempts, version } = facts;
    super(
      name,
      `${quote(name)} was not updated: ${attempts} of ${attempts} attempts conflicted with other writers (the version is now ${version}). Nothing was written; retry, or set promoteAfter to reduce conflicts.`,
    );
    this.attempts = attempts;
    this.version = version;
  }
}
