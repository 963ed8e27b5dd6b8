/** What those are told who wait for an entry: one sign, and what belongs to it. */

/** Ask again: somebody has filled it. */
export const READ = "?";
/** Ask again, but not all at once: somebody has given up, and one may try. */
export const AGAIN = "-";
/** Ask again: it was invalidated. */
export const AT_ONCE = "~";
/** Nobody can be given what was loaded: it is too large, or cannot be kept. */
export const ALONE = "/";

/** A value up to this size goes with the message. */
const SENT_BYTES_MAX = 8_192;

/** What is said of a value that was filled. */
export function filled(token: number, text: string): string {
  return Buffer.byteLength(text) <= SENT_BYTES_MAX ? `=${token} ${text}` : READ;
}

/** What is said of the last failure. */
export function failed(token: number, text: string): string {
  return `!${token} ${text}`;
}

/** A value, or a failure, and the token of the load that it is of; undefined if it is another message. */
export function parse(
  message: string,
): { readonly sort: "filled" | "failed"; readonly token: number; readonly text: string } | undefined {
  const match = /^([=!])(\d{1,16}) ([\s\S]*)$/.exec(message);
  if (match === null) return undefined;
  const [, sign, token, text = ""] = match;
  return { sort: sign === "=" ? "filled" : "failed", token: Number(token), text };
}
