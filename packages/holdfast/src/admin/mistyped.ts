/** Keys of another type than ours, as the errors of servers tell of them. */
import { QuorumError } from "../index.js";

/** Whether a server has answered that a key is of another type than what was asked of it. */
export function isMistyped(error: unknown): boolean {
  let one = error;
  for (let depth = 0; one !== undefined && one !== null && depth < 10; depth += 1) {
    if (one instanceof QuorumError) return one.answers.some((answer) => isMistyped(answer.error));
    if (/\bWRONGTYPE\b/.test(one instanceof Error ? one.message : String(one))) return true;
    one = one instanceof Error ? one.cause : undefined;
  }
  return false;
}

/** For what is told besides a lock: whatever stands in such a key is none of it. @throws error  any other */
export function nothingIfMistyped(error: unknown): undefined {
  if (!isMistyped(error)) throw error;
}
