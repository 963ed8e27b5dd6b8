import { usageError } from "../frame/exit-codes.js";
import { textOf } from "../frame/values.js";
import type { Call } from "../frame/verb.js";

/**
 * Returns the text of `-m`, which others read in messages, lists and the history.
 *
 * @throws CliError 64  missing, or over 256 bytes
 */
export function messageOf({ values }: Call, verb: string): string {
  const text = textOf(values, "message")?.trim();
  if (text === undefined || text === "") throw usageError(`${verb} needs -m WHY: everyone it affects sees the reason`);
  return checkMessage(text);
}

/** @throws CliError 64  over 256 bytes */
export function checkMessage(text: string): string {
  const bytes = Buffer.byteLength(text);
  if (bytes > 256) throw usageError(`-m must be 1 to 256 bytes; got ${bytes}`);
  return text;
}
