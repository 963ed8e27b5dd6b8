/** From the keys on a server back to the locks they belong to; docs/redis-keys.md has the rules. */
import { type LockKeys, lockKeys, mappedKeys } from "../internal.js";
import { LOCK_KINDS, type LockKind } from "./entry.js";

/** What a key says: that there is something of this lock. */
export interface Trace {
  readonly kind: LockKind;
  readonly name: string;
  /** The mapped key, if the lock has one. */
  readonly key: string | undefined;
  /** Which of its keys it is: `""` for the first one, else the suffix, such as `queue`. */
  readonly part: string;
  /** Of the queue of a condition. */
  readonly condition: string | undefined;
}

/**
 * What the key of a lock says, without what stands before the kind; undefined if it is none of a kind that is listed.
 *
 * A name may have anything in it, and is told by the last brace of the key: no suffix has one.
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

/** The name that stands so between braces. */
export function unescaped(escaped: string): string {
  return escaped.startsWith("%") ? escaped.slice(1) : escaped;
}

/** Where the keys of that lock are. */
export function keysOf(prefix: string, { kind, name, key }: Pick<Trace, "kind" | "name" | "key">): LockKeys {
  return key === undefined ? lockKeys(prefix, kind, name) : mappedKeys(prefix, kind, key);
}

function partOf(suffix: string): Pick<Trace, "part" | "condition"> {
  const [, encoded] = /^condition:([^:]*)$/.exec(suffix) ?? [];
  if (encoded === undefined) return { part: suffix, condition: undefined };
  try {
    return { part: "condition", condition: decodeURIComponent(encoded) };
  } catch {
    return { part: "condition", condition: encoded }; // not written by us; shown as it is
  }
}
