/**
 * Converts between text and bytes. Callers of this package use Unicode text; the package itself uses bytes.
 *
 * Redis and Lua know only bytes, so they count, order and compare bytes. Therefore, inside this package, a
 * string holds one byte per character (0 to 255).
 */
export type Bytes = string;

/** Returns the UTF-8 bytes of `text`. A lone surrogate becomes U+FFFD, as in every client library. */
export function toBytes(text: string): Bytes {
  return isAscii(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

/** Decodes UTF-8 bytes. Bytes that are not valid UTF-8 become U+FFFD. */
export function toText(bytes: Bytes): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, "latin1").toString("utf8");
}

/**
 * Only ASCII text has as many UTF-8 bytes as UTF-16 units. Nearly all keys and arguments are ASCII and need no copy.
 */
function isAscii(text: string): boolean {
  return Buffer.byteLength(text, "utf8") === text.length;
}
