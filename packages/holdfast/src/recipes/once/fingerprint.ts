/** What a call is about, as a short text that is the same for the same content. */
import { createHash } from "node:crypto";
import { jsonCodec } from "../codec.js";

/**
 * SHA-256 of the canonical JSON of `content`, in lower-case hex; empty for undefined. The order of an object's properties does not
 * matter, nor does a property that is undefined.
 *
 * @throws TypeError  it contains itself, a function or a symbol
 */
export function fingerprintOf(content: unknown): string {
  if (content === undefined) return "";
  checkComparable(content);
  return createHash("sha256")
    .update(JSON.stringify(sorted(JSON.parse(asText(content)))))
    .digest("hex");
}

function asText(content: unknown): string {
  try {
    return jsonCodec.encode(content);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new TypeError(`fingerprint must be of data that can be compared: ${error.message}`, { cause: error });
  }
}

/**
 * Something that shows none of what is in it, such as a file or a form, would be the same as any other of its sort.
 *
 * @throws TypeError  it contains such a thing
 */
export function checkComparable(value: unknown, checked: Set<unknown> = new Set()): void {
  if (typeof value !== "object" || value === null || checked.has(value)) return;
  if (value instanceof Date || value instanceof Uint8Array) return;
  if ("toJSON" in value && typeof value.toJSON === "function") return;
  checked.add(value);
  if (value instanceof Map || value instanceof Set) {
    for (const each of value) checkComparable(each, checked);
    return;
  }
  const parts = Object.values(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (parts.length === 0 && prototype !== null && prototype !== Object.prototype && !Array.isArray(value)) {
    const what = value.constructor.name;
    throw new TypeError(
      `fingerprint must be of data that can be compared; got a ${what}, which shows nothing of what is in it`,
    );
  }
  for (const each of parts) checkComparable(each, checked);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => !isUndefined(each))
      .map(([name, each]): [string, unknown] => [name, sorted(each)])
      // By code units, which no locale changes. A list of pairs, since objects put whole numbers first.
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function isUndefined(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).join() === "$undefined";
}
