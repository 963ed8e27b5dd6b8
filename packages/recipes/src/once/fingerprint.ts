/** Fingerprints of call contents: equal contents have equal fingerprints. */
import { createHash } from "node:crypto";
import { jsonCodec } from "../codec.js";

/**
 * Returns the SHA-256 of the canonical JSON of `content` in lower-case hex, or an empty string for undefined. The order
 * of properties does not matter, and undefined properties are ignored.
 *
 * @throws TypeError  `content` contains itself, a function, a symbol, or an object without comparable data
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
    throw new TypeError(`fingerprint must contain only data that can be compared: ${error.message}`, { cause: error });
  }
}

/**
 * Refuses objects without enumerable data, such as a file or a form: all objects of such a class would have the same
 * fingerprint.
 *
 * @throws TypeError  `value` contains such an object
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
    const what = `an instance of ${value.constructor.name}`;
    throw new TypeError(
      `fingerprint must contain only data that can be compared; the content of ${what} cannot be read`,
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
      // Sorts by code unit, regardless of the locale. `fromEntries` still puts whole-number names first, but always in
      // the same order.
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

function isUndefined(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).join() === "$undefined";
}
