/** Finds the lock that a key belongs to. packages/holdfast/docs/keys.md documents the format of keys. */
import { type LockKeys, lockKeys, mappedKeys } from "../core/keys.js";
import { LOCK_KINDS, type LockKind } from "./entry.js";

/** A parsed key of a lock. */
export interface Trace {
  readonly kind: LockKind;
  readonly name: string;
  /** The `key` option of the lock, if it has one. */
  readonly key: string | undefined;
  /** Which of the lock's keys this is: `""` for the first key, otherwise the key's suffix, such as `queue`. */
  readonly part: string;
  /** The name of the condition, if the key is the queue of a condition. */
  readonly condition: string | undefined;
}

/**
 * Parses the key of a lock. A name can contain any character, but a suffix contains no braces, so the name ends at the
 * last brace of the key.
 *
 * @param rest  the part of the key that begins with the kind
 * @returns undefined if the key does not belong to a kind in `LOCK_KINDS`
 */
export function traceOf(rest: string): Trace | undefined {
  const colon = rest.indexOf(":");
  const kind = LOCK_KINDS.find((one) => one === rest.slice(0, colon));
  if (kind === undefined) return undefined;
  const place = rest.slice(colon + 1);
  const mapped =
    /^mapped:\{(.*)\}:([^{}]+)$/s.exec(place) ?? /^mapped-tag:(.*\{.+\}.*?):([^{}:]+|condition:[^{}:]+)$/s.exec(place);
  if (mapped !== null) {
    const [, key = "", suffix = ""] = mapped;
    return kind === "mutex" ? { kind, name: key, key, ...partOf(suffix) } : undefined;
  }
  const [, escaped, suffix = ""] = /^\{(.*)\}(?::([^{}]+))?$/s.exec(place) ?? [];
  if (escaped === undefined || escaped === "") return undefined;
  return { kind, name: unescaped(escaped), key: undefined, ...partOf(suffix) };
}

/** Unescapes a name. `escaped` is the text between the braces of a key. */
export function unescaped(escaped: string): string {
  return escaped.startsWith("%") ? escaped.slice(1) : escaped;
}

/** Returns the keys of a lock. */
export function keysOf(prefix: string, { kind, name, key }: Pick<Trace, "kind" | "name" | "key">): LockKeys {
  return key === undefined ? lockKeys(prefix, kind, name) : mappedKeys(prefix, kind, key);
}

function partOf(suffix: string): Pick<Trace, "part" | "condition"> {
  const [, encoded] = /^condition:([^:]*)$/.exec(suffix) ?? [];
  if (encoded === undefined) return { part: suffix, condition: undefined };
  try {
    return { part: "condition", condition: decodeURIComponent(encoded) };
  } catch {
    return { part: "condition", condition: encoded }; // not written by Holdfast, so shown unchanged
  }
}
