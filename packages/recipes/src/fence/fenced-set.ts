/** A value in Redis that only the latest holder of a lock can write. */

import type { Holdfast } from "holdfast";
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
} from "holdfast/internal";
import { recipesFenceSet } from "../generated/fence.js";
import { checkFencing, type FencingLease, refuseBy } from "./fencing.js";

/** Options of `fencedSet`. */
export interface FencedSetOptions {
  /** The key of the value in Redis. 1 to 512 bytes. */
  readonly key: string;
  /** The new value. It replaces any earlier value. */
  readonly value: string;
  /** A lease of the lock that protects the value. Always use the same lock for a value. */
  readonly lease: FencingLease;
  /**
   * How long the value is kept. Its mark, which stores the highest token, is kept one day longer. A late holder is not
   * recognized once the mark has expired. Whole milliseconds, 1 to 31,536,000,000.
   * @default the value and its mark are kept forever
   */
  readonly keepMs?: number | undefined;
  /**
   * Prefix of the mark's key if `redis` is a client. All writers of the value must use the same prefix. A Holdfast
   * always uses its own prefix.
   * @default "hf"
   */
  readonly prefix?: string | undefined;
}

const YEAR_MS = 31_536_000_000;
/** How much longer a mark lives than its value. */
const MARK_EXTRA_MS = 86_400_000;

/**
 * Writes a value in Redis unless a later holder of the lock has already written it. One script compares the token,
 * remembers it and writes the value. So a holder that was paused can never overwrite its successor's value, as long
 * as tokens rise. A lease may write any number of times. `fencedSet` does not check that the lease is still valid; use
 * `lease.assertHeld()` for that.
 *
 * All writers must use `fencedSet`, because a plain SET does not check the token.
 *
 * @param redis  the client or the Holdfast of the server that stores the value, which may differ from the lock's server
 * @throws StaleTokenError   a later holder has written the value; nothing was written. If a reply was lost, the value
 *                           may have been in Redis until that holder wrote
 * @throws ForeignLockError  the value belongs to another lock; nothing was written
 * @throws StoreError        outcome unknown; calling it again is safe
 * @throws ClosedError       the Holdfast was closed
 * @throws TypeError, RangeError  an invalid argument; nothing was sent
 *
 * @example
 * await holdfast.mutex("report:7").run(async (lease) => {
 *   const value = await buildReport({ signal: lease.signal });
 *   await fencedSet(holdfast, { key: "report:7", value, lease }); // rejects if a later holder has written
 * });
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
