/** The messages to processes that wait for an entry. The first character of each is its type. */

/** The entry was filled: query it. */
export const READ = "?";
/** A load failed or was given up, and one waiting process may try: query the entry after a random delay. */
export const AGAIN = "-";
/** The entry was invalidated: query it immediately. */
export const AT_ONCE = "~";
/** The loaded value is too large or cannot be encoded: load it without a lease. */
export const ALONE = "/";

/** Maximum size of a value that is sent in a message, in bytes. */
const SENT_BYTES_MAX = 8_192;

/** Returns the message for a filled entry. It contains the value if the value is small enough. */
export function filled(token: number, text: string): string {
  return Buffer.byteLength(text) <= SENT_BYTES_MAX ? `=${token} ${text}` : READ;
}

/** Returns the message for the failure of the last allowed attempt. */
export function failed(token: number, text: string): string {
  return `!${token} ${text}`;
}

/** Parses a message with a value or a failure; undefined for any other message. `token` is the token of the load. */
export function parse(
  message: string,
): { readonly sort: "filled" | "failed"; readonly token: number; readonly text: string } | undefined {
  const match = /^([=!])(\d{1,16}) ([\s\S]*)$/.exec(message);
  if (match === null) return undefined;
  const [, sign, token, text = ""] = match;
  return { sort: sign === "=" ? "filled" : "failed", token: Number(token), text };
}
