/** Converts values to text and back, for storage on the server. */
import { Buffer } from "node:buffer";
import { show } from "holdfast/internal";

/** Converts values to text and back. Both functions must be pure, and `decode(encode(value))` must equal `value`. */
export interface Codec {
  /**
   * Converts a value to text.
   *
   * @throws if the value cannot be encoded; recipes treat it like a value that is too large
   */
  encode(value: unknown): string;
  /** Converts text from `encode` back to its value. */
  decode(text: string): unknown;
}

/** Marks a special value, which is encoded as an object with one property whose name begins with this character. */
const TAG = "$";

/**
 * JSON, plus values that JSON lacks: undefined, bigint, Date, NaN, Infinity, -Infinity, -0, Map, Set, and bytes
 * (`Uint8Array` and `Buffer`, which both decode to `Buffer`). Instances of classes decode to plain objects. Cycles,
 * functions and symbols are refused with a TypeError.
 *
 * Plain JSON text decodes to the value it represents, so other programs can write it.
 */
export const jsonCodec: Codec = {
  encode: (value) => JSON.stringify(toJson(value, new Set())),
  decode: (text) => fromJson(JSON.parse(text)),
};

/**
 * @param path  the objects that contain the value. All levels share one set, because copying it for each level would
 *              take quadratic time
 */
function toJson(value: unknown, path: Set<object>): unknown {
  switch (typeof value) {
    case "undefined":
      return { [`${TAG}undefined`]: 0 };
    case "bigint":
      return { [`${TAG}bigint`]: String(value) };
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { [`${TAG}number`]: nameOf(value) };
    case "string":
    case "boolean":
      return value;
    case "object": {
      if (value === null) return null;
      if (path.has(value)) throw new TypeError("a value that contains itself cannot be encoded");
      path.add(value);
      const json = objectToJson(value, path);
      path.delete(value);
      return json;
    }
    default:
      throw new TypeError(`a ${typeof value} cannot be encoded`);
  }
}

function nameOf(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

function objectToJson(value: object, path: Set<object>): unknown {
  const all = (values: Iterable<unknown>): unknown[] => Array.from(values, (each) => toJson(each, path));
  if (Array.isArray(value)) return all(value);
  if (value instanceof Date) return { [`${TAG}date`]: value.getTime() };
  if (value instanceof Uint8Array) return { [`${TAG}bytes`]: Buffer.from(value).toString("base64") };
  if (value instanceof Map) return { [`${TAG}map`]: all(value) };
  if (value instanceof Set) return { [`${TAG}set`]: all(value) };
  if ("toJSON" in value && typeof value.toJSON === "function") return toJson(value.toJSON(), path);
  const entries = Object.entries(value).map(([name, each]): [string, unknown] => [escaped(name), toJson(each, path)]);
  return Object.fromEntries(entries);
}

/** Adds a second `$` to a property name that looks like a tag. */
function escaped(name: string): string {
  return name.startsWith(TAG) ? TAG + name : name;
}

function fromJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromJson);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [first] = entries;
  if (entries.length === 1 && first !== undefined && first[0].startsWith(TAG) && !first[0].startsWith(TAG + TAG)) {
    const special = fromTag(first[0].slice(TAG.length), first[1]);
    if (special !== undefined) return special.value;
  }
  // `fromEntries` instead of assignment, because a property may be named `__proto__`.
  return Object.fromEntries(
    entries.map(([name, each]) => [name.startsWith(TAG + TAG) ? name.slice(TAG.length) : name, fromJson(each)]),
  );
}

/** Returns undefined if the tag is unknown. */
function fromTag(tag: string, content: unknown): { readonly value: unknown } | undefined {
  switch (tag) {
    case "undefined":
      return { value: undefined };
    case "bigint":
      return { value: BigInt(String(content)) };
    case "number":
      return { value: Number(content) };
    case "date":
      return { value: new Date(content === null ? Number.NaN : Number(content)) };
    case "bytes":
      return { value: Buffer.from(String(content), "base64") };
    case "map":
      return { value: new Map(fromJson(content) as [unknown, unknown][]) };
    case "set":
      return { value: new Set(fromJson(content) as unknown[]) };
    default:
      return undefined;
  }
}

/** @throws TypeError  `codec` lacks the functions `encode` and `decode`; the message names the option */
export function checkCodec(codec: Codec, option = "codec"): Codec {
  if (typeof codec?.encode !== "function" || typeof codec.decode !== "function") {
    throw new TypeError(`${option} must be an object with the functions encode and decode; got ${show(codec)}`);
  }
  return codec;
}
