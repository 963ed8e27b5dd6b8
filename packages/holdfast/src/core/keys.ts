import { quote } from "./error-messages.js";

/**
 * The keys of a lock, and the checks of names, labels, prefixes and other strings from callers.
 *
 * Invariants:
 * - Two locks never share a key, whatever their names are.
 * - All keys of a lock are in one slot of a Redis Cluster, which hashes the text between the first `{` and the next
 *   `}`.
 */

/** The keys of one lock. */
export interface LockKeys {
  /** The text in the hash tag. */
  readonly tag: string;
  /** The key that stores the lock. */
  readonly lock: string;
  /**
   * Every other key is this base plus a suffix, such as `:queue`. The base equals `lock` unless the user chose the key
   * of the lock.
   */
  readonly base: string;
}

/**
 * Returns the keys of the lock `name`, for example `hf:mutex:{order:42}`.
 *
 * A name that begins with `}` would make an empty tag, so a cluster would hash whole keys, into different slots. Such a
 * name gets the prefix `%`. A name that begins with `%` gets it too, so that two names never have the same key.
 */
export function lockKeys(prefix: string, kind: string, name: string): LockKeys {
  const escaped = name.startsWith("}") || name.startsWith("%") ? `%${name}` : name;
  const end = escaped.indexOf("}");
  const base = `${prefix}:${kind}:{${escaped}}`;
  return { tag: end < 0 ? escaped : escaped.slice(0, end), lock: base, base };
}

/**
 * Returns the keys of a lock with a given main key, which clients of other libraries can share.
 *
 * The other keys must be in the same slot as the main key. So they contain its hash tag or, if it has none, the whole
 * key as their tag.
 */
export function mappedKeys(prefix: string, kind: string, key: string): LockKeys {
  const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key;
  return {
    lock: key,
    tag,
    // The two forms must differ, because the keys `a` and `{a}` belong to two different locks.
    base: tag === key ? `${prefix}:${kind}:mapped:{${key}}` : `${prefix}:${kind}:mapped-tag:${key}`,
  };
}

/**
 * Checks and returns a lock name.
 *
 * @throws TypeError, RangeError  not a well-formed string of 1 to 512 bytes of UTF-8
 */
export function checkName(name: unknown): string {
  return checkText("name", name, 1, 512);
}

/** Checks and returns a label. @throws TypeError, RangeError  not a string of at most 256 bytes */
export function checkLabel(label: unknown): string {
  return checkText("label", label, 0, 256);
}

/** Checks and returns free text, such as a reason. @throws TypeError, RangeError  not a string of 1 to 256 bytes */
export function checkWords(option: string, words: unknown): string {
  return checkText(option, words, 1, 256);
}

/** Checks and returns a caller id. @throws TypeError, RangeError  not a string of 1 to 256 bytes */
export function checkCallerId(callerId: unknown): string {
  return checkText("callerId", callerId, 1, 256);
}

/** Checks and returns the name of a resource. @throws TypeError, RangeError  not a string of 1 to 512 bytes */
export function checkResource(resource: unknown): string {
  return checkText("resource", resource, 1, 512);
}

/** Checks and returns a request id. @throws TypeError, RangeError  not a string of 1 to 256 bytes */
export function checkRequestId(requestId: unknown): string {
  return checkText("requestId", requestId, 1, 256);
}

/** Checks and returns a value. @throws TypeError, RangeError  not a string of at most 65,536 bytes */
export function checkValue(value: unknown): string {
  return checkText("value", value, 0, 65_536);
}

/** Checks and returns a client name. @throws TypeError, RangeError  not a string of at most 256 bytes */
export function checkClientName(clientName: unknown): string {
  return checkText("clientName", clientName, 0, 256);
}

/**
 * Checks and returns a key.
 *
 * @throws TypeError, RangeError  not a string of 1 to 512 bytes, or its first `}` does not close a hash tag
 */
export function checkKey(key: unknown): string {
  const text = checkText("key", key, 1, 512);
  if (text.includes("}") && !/^[^{}]*\{[^}]+\}/.test(text)) {
    throw new RangeError(`the first "}" in key must close a hash tag such as {a}; got ${quote(text)}`);
  }
  return text;
}

/**
 * Checks and returns a prefix.
 *
 * @throws TypeError, RangeError  not a string of 1 to 64 printable ASCII characters without spaces or braces
 */
export function checkPrefix(prefix: unknown): string {
  const text = checkText("prefix", prefix, 1, 64);
  if (!/^[!-z|~]+$/.test(text)) {
    throw new RangeError(`prefix must be printable ASCII without spaces or braces; got ${quote(text)}`);
  }
  return text;
}

function checkText(option: string, value: unknown, minBytes: number, maxBytes: number): string {
  if (typeof value !== "string") {
    throw new TypeError(`${option} must be a string of ${minBytes} to ${maxBytes} bytes; got ${show(value)}`);
  }
  const bytes = value.length > maxBytes ? value.length : Buffer.byteLength(value);
  // Fast path for ASCII text of valid length, which is the common case.
  if (bytes === value.length && bytes >= minBytes && bytes <= maxBytes) return value;
  if (bytes < minBytes || bytes > maxBytes) {
    const got = bytes === 0 ? "an empty string" : bytes + (value.length > maxBytes ? " or more" : "");
    throw new RangeError(`${option} must be ${minBytes} to ${maxBytes} bytes of UTF-8; got ${got}`);
  }
  // `Buffer` encodes every lone surrogate as the same three bytes, so two different names could get the same key.
  if (/\p{Surrogate}/u.test(value)) {
    throw new RangeError(
      `${option} must be well-formed Unicode; got ${quote(value)}, which contains half of a surrogate pair`,
    );
  }
  return value;
}

/** Formats a value for an error message: short and on one line. Never throws. */
export function show(value: unknown): string {
  if (typeof value === "string") return quote(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  if (value === null || typeof value !== "object") return String(value);
  return Array.isArray(value) ? "an array" : "an object";
}

/** Creates the error for an option that does not exist. It suggests a similar name, if there is one. */
export function unknownOption(option: string, known: readonly string[]): TypeError {
  const wanted = option.toLowerCase();
  const within = (edits: number): string | undefined =>
    known.find((name) => edits <= name.length / 3 && areNear(wanted, name.toLowerCase(), edits));
  const nearest = within(0) ?? within(1) ?? within(2) ?? within(3);
  const hint = nearest === undefined ? "the" : `did you mean ${nearest}? The`;
  return new TypeError(`there is no option ${show(option)}; ${hint} options are ${known.join(", ")}`);
}

/** Whether inserting, removing or replacing at most `edits` characters turns one string into the other. */
function areNear(one: string, other: string, edits: number): boolean {
  if (one === "" || other === "") return one.length + other.length <= edits;
  const [rest, otherRest] = [one.slice(1), other.slice(1)];
  if (one[0] === other[0]) return areNear(rest, otherRest, edits);
  if (edits === 0) return false;
  return [
    areNear(rest, other, edits - 1),
    areNear(one, otherRest, edits - 1),
    areNear(rest, otherRest, edits - 1),
  ].includes(true);
}
