import { UnsupportedError } from "./core/errors.js";
import { show } from "./core/keys.js";
import type { ResolvedOptions } from "./core/options.js";
import type { Session } from "./core/session.js";
import type { Store } from "./core/store.js";

/** What stands behind a Holdfast, for locks that are not made by its own factories but by another entry point of the library. */

/** See the file header. */
export interface Internals {
  readonly session: Session;
  /** Of every acquire, as `createHoldfast` was told. */
  readonly defaults: ResolvedOptions;
  /** What all keys and channels of this library begin with. */
  readonly prefix: string;
  /** Which process this is, for people; empty if it was not told. */
  readonly clientName: string;
  /** Where it is on several independent servers: these. The session's store then is none of them. */
  readonly servers?: readonly Store[] | undefined;
}

const known = new WeakMap<object, Internals>();

/** Says what stands behind `holdfast`. */
export function withInternals<Made extends object>(holdfast: Made, internals: Internals): Made {
  known.set(holdfast, internals);
  return holdfast;
}

/**
 * What stands behind `holdfast`, be that one server or several.
 *
 * @throws TypeError  it is not what `createHoldfast` has returned
 */
export function anyInternalsOf(holdfast: unknown): Internals {
  const found = typeof holdfast === "object" && holdfast !== null ? known.get(holdfast) : undefined;
  if (found === undefined) throw new TypeError(`holdfast must be what createHoldfast returned; got ${show(holdfast)}`);
  return found;
}

/**
 * What stands behind `holdfast`.
 *
 * @param lockName  for the message
 * @throws TypeError         it is not what `createHoldfast` has returned
 * @throws UnsupportedError  it is on several independent servers
 */
export function internalsOf(holdfast: unknown, lockName: string): Internals {
  const found = anyInternalsOf(holdfast);
  if (found.servers !== undefined) {
    const what = "cannot be on several independent servers: it needs one, a cluster, or Sentinel";
    throw new UnsupportedError(lockName, `${show(lockName)} ${what}.`);
  }
  return found;
}
