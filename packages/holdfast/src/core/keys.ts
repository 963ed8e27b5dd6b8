import { quote } from "./error-messages.js";

/**
 * From a lock's name to its keys, and the checks on what comes from data: names, labels, prefixes.
 *
 * Invariants: two locks never share a key, whatever their names are; and all keys of a lock are in one slot of
 * a Redis Cluster, which hashes what stands between the first `{` of a key and the next `}`.
 */

/** Keys of one lock. */
export interface LockKeys {
  /** What stands in the hash tag. */
  readonly tag: string;
  /** The key that holds the lock. */
  readonly lock: string;
  /** What a suffix such as `:queue` makes the other keys of; the lock's own, unless that was given. */
  readonly base: string;
}

/**
 * Keys of the lock `name`, e.g. `hf:mutex:{order:42}`.
 *
 * An empty tag would make a cluster hash the whole key, so a name that begins with `}` gets a `%` before it;
 * and so does one that begins with `%`, to keep the two apart.
 */
export function lockKeys(prefix: string, kind: string, name: string): LockKeys {
  const escaped = name.startsWith("}") || name.startsWith("%") ? `%${name}` : name;
  const end = escaped.indexOf("}");
  const base = `${prefix}:${kind}:{${escaped}}`;
  return { tag: end < 0 ? escaped : escaped.slice(0, end), lock: base, base };
}

/**
 * Keys of a lock whose main key is given, so that clients of other libraries can share it.
 *
 * The other keys must land in the slot of that key: its own hash tag serves, or else the whole key becomes one.
 */
export function mappedKeys(prefix: string, kind: string, key: string): LockKeys {
  const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key;
  return {
    lock: key,
    tag,
    // Two words, because the keys `a` and `{a}` are two locks.
    base: tag === key ? `${prefix}:${kind}:mapped:{${key}}` : `${prefix}:${kind}:mapped-tag:${key}`,
  };
}

/** @throws TypeError, RangeError  unless the name is a string of 1 to 512 bytes that UTF-8 can express */
export function checkName(name: unknown): string {
  return checkText("name", name, 1, 512);
}

/** @throws TypeError, RangeError  unless the label is a string of at most 256 bytes */
export function checkLabel(label: unknown): string {
  return checkText("label", label, 0, 256);
}

/** @throws TypeError, RangeError  unless the option is a string of 1 to 256 bytes: what a person says */
export function checkWords(option: string, words: unknown): string {
  return checkText(option, words, 1, 256);
}

/** @throws TypeError, RangeError  unless the caller id is a string of 1 to 256 bytes */
export function checkCallerId(callerId: unknown): string {
  return checkText("callerId", callerId, 1, 256);
}

/** @throws TypeError, RangeError  unless the resource is a string of 1 to 512 bytes */
export function checkResource(resource: unknown): string {
  return checkText("resource", resource, 1, 512);
}

/** @throws TypeError, RangeError  unless the request id is a string of 1 to 256 bytes */
export function checkRequestId(requestId: unknown): string {
  return checkText("requestId", requestId, 1, 256);
}

/** @throws TypeError, RangeError  unless the value is a string of at most 65,536 bytes */
export function checkValue(value: unknown): string {
  return checkText("value", value, 0, 65_536);
}

/** @throws TypeError, RangeError  unless the client name is a string of at most 256 bytes */
export function checkClientName(clientName: unknown): string {
  return checkText("clientName", clientName, 0, 256);
}

/** @throws TypeError, RangeError  unless the key is a string of 1 to 512 bytes without a stray closing brace */
export function checkKey(key: unknown): string {
  const text = checkText("key", key, 1, 512);
  if (text.includes("}") && !/^[^{}]*\{[^}]+\}/.test(text)) {
    throw new RangeError(`key must have its first "}" close a hash tag such as {a}; got ${quote(text)}`);
  }
  return text;
}

/** @throws TypeError, RangeError  unless the prefix is 1 to 64 printable ASCII characters without space or brace */
export function checkPrefix(prefix: unknown): string {
  const text = checkText("prefix", prefix, 1, 64);
  if (!/^[!-z|~]+$/.test(text)) {
    throw new RangeError(`prefix must be printable ASCII without spaces and braces; got ${quote(text)}`);
  }
  return text;
}

function checkText(option: string, value: unknown, minBytes: number, maxBytes: number): string {
  if (typeof value !== "string") {
    throw new TypeError(`${option} must be a string of ${minBytes} to ${maxBytes} bytes; got ${show(value)}`);
  }
  const bytes = value.length > maxBytes ? value.length : Buffer.byteLength(value);
  // ASCII and neither too short nor too long, as most are.
  if (bytes === value.length && bytes >= minBytes && bytes <= maxBytes) return value;
  if (bytes === 0)
    throw new RangeError(`${option} must be ${minBytes} to ${maxBytes} bytes of UTF-8; got an empty string`);
  if (bytes < minBytes || bytes > maxBytes) {
    throw new RangeError(
      `${option} must be ${minBytes} to ${maxBytes} bytes of UTF-8; got ${bytes}${bytes === value.length && value.length > maxBytes ? " or more" : ""}`,
    );
  }
  // Every lone surrogate becomes the same three bytes, so two such names would be one lock.
  if (/\p{Surrogate}/u.test(value)) {
    throw new RangeError(`${option} must be well-formed Unicode; got ${quote(value)}, half of a pair`);
  }
  return value;
}

/** A value as an error message shows it: short, on one line, and never throwing. */
export function show(value: unknown): string {
  if (typeof value === "string") return quote(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  if (value === null || typeof value !== "object") return String(value);
  return Array.isArray(value) ? "an array" : "an object";
}

/** The error for an option that does not exist. It suggests the nearest name, if one is near. */
export function unknownOption(option: string, known: readonly string[]): TypeError {
  const wanted = option.toLowerCase();
  const [nearest] = known
    .map((name) => ({ name, edits: editsBetween(wanted, name.toLowerCase()) }))
    .filter(({ name, edits }) => edits <= Math.min(3, Math.floor(name.length / 3)))
    .toSorted((one, other) => one.edits - other.edits);
  const hint = nearest === undefined ? "the" : `did you mean ${nearest.name}? The`;
  return new TypeError(`there is no option ${show(option)}; ${hint} options are ${known.join(", ")}`);
}

/** How many letters must be inserted, removed or replaced to make one text of the other (Levenshtein 1965). */
function editsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 0; i < one.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j += 1) {
      const replaced = (row[j] ?? 0) + (one[i] === other[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
