import { UnsupportedError } from "./core/errors.js";
import { show } from "./core/keys.js";
import type { ResolvedOptions } from "./core/options.js";
import type { Session } from "./core/session.js";
import type { Store } from "./core/store.js";

/** Gives other entry points access to the parts of a Holdfast, for locks that its own factories do not create. */

/** The parts of one Holdfast. */
export interface Internals {
  readonly session: Session;
  /** Defaults of every acquire, from the options of `createHoldfast`. */
  readonly defaults: ResolvedOptions;
  /** The prefix of all keys and channels. */
  readonly prefix: string;
  /** The `clientName` option; empty if it was not given. */
  readonly clientName: string;
  /**
   * The stores of the quorum if the Holdfast is on several independent servers. In that case the session's own store is
   * not one of them.
   */
  readonly servers?: readonly Store[] | undefined;
}

const known = new WeakMap<object, Internals>();

/** Records the parts of `holdfast`, and returns `holdfast`. */
export function withInternals<Made extends object>(holdfast: Made, internals: Internals): Made {
  known.set(holdfast, internals);
  return holdfast;
}

/**
 * Returns the parts of `holdfast`, on one server or several.
 *
 * @throws TypeError  `holdfast` was not returned by `createHoldfast`
 */
export function anyInternalsOf(holdfast: unknown): Internals {
  const found = typeof holdfast === "object" && holdfast !== null ? known.get(holdfast) : undefined;
  if (found === undefined) throw new TypeError(`holdfast must be the result of createHoldfast; got ${show(holdfast)}`);
  return found;
}

/**
 * Returns the parts of `holdfast`.
 *
 * @param lockName  for the error message
 * @throws TypeError         `holdfast` was not returned by `createHoldfast`
 * @throws UnsupportedError  `holdfast` is on several independent servers
 */
export function internalsOf(holdfast: unknown, lockName: string): Internals {
  const found = anyInternalsOf(holdfast);
  if (found.servers !== undefined) {
    const what = "cannot be on several independent servers: it needs one server, a cluster or Sentinel";
    throw new UnsupportedError(lockName, `${show(lockName)} ${what}.`);
  }
  return found;
}
