/**
 * Text at the border, bytes inside.
 *
 * The server and Lua know bytes only: lengths, order and equality are theirs. Inside this package a string
 * therefore holds one byte per character (0 to 255), and only what comes from or goes to a caller is Unicode.
 */
export type Bytes = string;

/** The UTF-8 bytes of `text`. A lone surrogate becomes U+FFFD, as in every client library. */
export function toBytes(text: string): Bytes {
  return isAscii(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

/** The text whose UTF-8 is `bytes`. What is not UTF-8 becomes U+FFFD. */
export function toText(bytes: Bytes): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, "latin1").toString("utf8");
}

/** Only ASCII has as many UTF-8 bytes as UTF-16 units; nearly all keys and arguments are, and need no copy. */
function isAscii(text: string): boolean {
  return Buffer.byteLength(text, "utf8") === text.length;
}
