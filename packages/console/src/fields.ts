/** Validates the fields of a request body. The error names the field and the values that it allows. */
import { badRequest } from "./problem.js";

/** The fields of a request body. */
export type Fields = Readonly<Record<string, unknown>>;

/** The library's limit for reasons. */
const MOST_WORD_BYTES = 256;

/** The reason for an action, shown to the holder and written to the audit line. @throws HttpProblem 400 */
export function reasonOf(fields: Fields): string {
  const reason = fields.reason;
  const text = typeof reason === "string" ? reason.trim() : "";
  const bytes = Buffer.byteLength(text);
  if (bytes >= 1 && bytes <= MOST_WORD_BYTES && !/\p{Surrogate}/u.test(text)) return text;
  throw badRequest(`reason must be a string of 1 to ${MOST_WORD_BYTES} bytes: everyone affected sees it.`);
}

/** A non-empty string. @throws HttpProblem 400 */
export function textOf(fields: Fields, field: string, mostBytes: number): string {
  const text = fields[field];
  if (typeof text === "string" && text !== "" && Buffer.byteLength(text) <= mostBytes) return text;
  throw badRequest(`${field} must be a string of 1 to ${mostBytes} bytes.`);
}

/** An integer, 1 to `most`. @throws HttpProblem 400 */
export function wholeOf(fields: Fields, field: string, most: number): number {
  const number = fields[field];
  if (typeof number === "number" && Number.isSafeInteger(number) && number >= 1 && number <= most) return number;
  throw badRequest(`${field} must be a whole number, 1 to ${most}.`);
}

/** A token; null is allowed only with `orNull`, for holders without a token. @throws HttpProblem 400 */
export function tokenOf(fields: Fields, field: string, { orNull }: { readonly orNull: boolean }): number | null {
  if (orNull && fields[field] === null) return null;
  return wholeOf(fields, field, Number.MAX_SAFE_INTEGER);
}

/** An instant in ms since 1970; null: none. @throws HttpProblem 400 */
export function instantOf(fields: Fields, field: string): number | null {
  return fields[field] === null ? null : wholeOf(fields, field, 8_640_000_000_000_000);
}
