/** Recognizes errors about keys that have a different Redis type than Holdfast expects. */
import { QuorumError } from "../core/errors.js";

/** Whether an error means that a key has a different type than the request expects (WRONGTYPE). */
export function isMistyped(error: unknown): boolean {
  let one = error;
  for (let depth = 0; one !== undefined && one !== null && depth < 10; depth += 1) {
    if (one instanceof QuorumError) return one.answers.some((answer) => isMistyped(answer.error));
    if (/\bWRONGTYPE\b/.test(one instanceof Error ? one.message : String(one))) return true;
    one = one instanceof Error ? one.cause : undefined;
  }
  return false;
}

/**
 * Handles an error from reading an optional record. Returns undefined if the key has another type, because then the key
 * does not contain such a record.
 *
 * @throws error  any other error
 */
export function nothingIfMistyped(error: unknown): undefined {
  if (!isMistyped(error)) throw error;
}
