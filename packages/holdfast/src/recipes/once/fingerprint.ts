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
  return createHash("sha256")
    .update(JSON.stringify(sorted(JSON.parse(jsonCodec.encode(content)))))
    .digest("hex");
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
