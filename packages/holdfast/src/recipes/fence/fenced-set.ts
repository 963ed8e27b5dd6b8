/** A value in Redis that only the latest holder of a lock can write. */

import { recipesFenceSet } from "../../generated/recipes-scripts.js";
import type { Holdfast } from "../../index.js";
import {
  call,
  checkKey,
  checkKnown,
  checkWhole,
  insist,
  mappedKeys,
  type RedisClient,
  show,
  storeOf,
} from "../../internal.js";
import { checkFencing, type FencingLease, refuseBy } from "./fencing.js";

/** What to write, and by whose right. */
export interface FencedSetOptions {
  /** The key of the value, as it is to stand in Redis. 1 to 512 bytes. */
  readonly key: string;
  /** What to write, in place of whatever stands there. */
  readonly value: string;
  /** Of the lock that protects the value; always the same lock. */
  readonly lease: FencingLease;
  /**
   * How long the value is kept. The mark is kept for a day more: somebody who stood still for longer than that is not recognized.
   * Whole milliseconds, 1 to 31,536,000,000.
   * @default for ever, and the mark with it
   */
  readonly keepMs?: number | undefined;
  /**
   * What the key of the mark begins with, where `redis` is a client; everybody who writes the value gives the same. A Holdfast has
   * its own.
   * @default "hf"
   */
  readonly prefix?: string | undefined;
}

const YEAR_MS = 31_536_000_000;
/** How long a mark outlives its value. */
const MARK_EXTRA_MS = 86_400_000;

/**
 * Writes `key`, unless a later holder of the lock has written it before: token and value are compared, remembered and written by one
 * script. So what two holders write never mixes, however long one of them stands still, as long as tokens rise. The same lease may
 * write as often as it likes. Whether the lease is still valid is not asked; `lease.assertHeld()` is.
 *
 * Everybody has to write with it: a plain SET asks nobody.
 *
 * @param redis  the client, or the Holdfast, of the server that has the value; that need not be the server of the lock
 * @throws StaleTokenError   a later holder has been there; nothing was written. If an answer was lost on the way, the value may have
 *                           been there until that holder wrote
 * @throws ForeignLockError  the value belongs to another lock; nothing was written
 * @throws StoreError        outcome unknown; calling it again is safe. @throws ClosedError
 * @throws TypeError, RangeError  a wrong argument; nothing was sent
 */
export async function fencedSet(redis: RedisClient | Holdfast, options: FencedSetOptions): Promise<void> {
  const { key, value, lease, keepMs, prefix } = checkKnown(options, ["key", "value", "lease", "keepMs", "prefix"]);
  const fencing = checkFencing(lease);
  const data = checkKey(key);
  if (typeof value !== "string") throw new TypeError(`value must be a string; got ${show(value)}`);
  if (keepMs !== undefined) checkWhole("keepMs", keepMs, 1, YEAR_MS);
  const at = storeOf(redis, fencing.name, prefix);
  const keys = { data, mark: mappedKeys(at.prefix, "fence", data).base };
  const args = {
    lock: fencing.name,
    token: fencing.token,
    value,
    keepMs: keepMs ?? 0,
    markMs: keepMs === undefined ? 0 : keepMs + MARK_EXTRA_MS,
  };
  const caller = { store: at.store, name: fencing.name };
  const reply = await insist(at, () => call(caller, recipesFenceSet, keys, args, at.commandTimeoutMs));
  if (reply.outcome === "written") return;
  const [lock = fencing.name] = reply.outcome === "foreign" ? reply.lock : [];
  refuseBy({ lock, token: reply.seen }, data, fencing);
}
