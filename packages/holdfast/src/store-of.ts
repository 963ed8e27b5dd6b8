/** Finds the store for a key that the user chose: the store of a Holdfast, or a store on a client. */

import { UnsupportedError } from "./core/errors.js";
import { checkPrefix, show } from "./core/keys.js";
import { type Runtime, systemRuntime } from "./core/runtime.js";
import type { Store } from "./core/store.js";
import type { Holdfast } from "./holdfast.js";
import { anyInternalsOf } from "./internals.js";
import { type RedisClient, storeFor } from "./stores/detect.js";

export type { RedisClient } from "./stores/detect.js";

/** A store to write to, and how long to wait for a reply. */
export interface StoreOf {
  readonly store: Store;
  /** The prefix of Holdfast's keys in that store. */
  readonly prefix: string;
  readonly commandTimeoutMs: number;
  readonly runtime: Runtime;
}

/** One store per client, because each store adds listeners to the client. */
const stores = new WeakMap<object, Store>();

const COMMAND_TIMEOUT_MS = 2_000;

/**
 * Returns the store of a Holdfast, or the store on a client.
 *
 * @param redis   a Holdfast, or a client that its owner closes
 * @param name    name of the lock or object, for error messages
 * @param prefix  only for a client, because a Holdfast has its own; default `"hf"`
 * @throws TypeError         `redis` is neither, or a prefix was given with a Holdfast
 * @throws RangeError        an invalid prefix
 * @throws UnsupportedError  the Holdfast is on several independent servers
 * @throws ClosedError       the Holdfast is closed
 */
export function storeOf(redis: RedisClient | Holdfast, name: string, prefix: string | undefined): StoreOf {
  if (typeof redis !== "object" || redis === null || !("mutex" in redis)) {
    const store = stores.get(redis) ?? storeFor(redis);
    stores.set(redis, store);
    return {
      store,
      prefix: checkPrefix(prefix ?? "hf"),
      commandTimeoutMs: COMMAND_TIMEOUT_MS,
      runtime: systemRuntime,
    };
  }
  const { session, prefix: own, servers } = anyInternalsOf(redis);
  if (servers !== undefined) {
    throw new UnsupportedError(
      name,
      `${show(name)} needs one server, but this Holdfast has several: pass a Holdfast created without redlock, or a client.`,
    );
  }
  if (prefix !== undefined)
    throw new TypeError(`prefix can only be given with a client; this Holdfast already has the prefix "${own}"`);
  session.assertOpen(name);
  return { store: session.store, prefix: own, commandTimeoutMs: session.commandTimeoutMs, runtime: session.runtime };
}
