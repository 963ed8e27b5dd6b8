/** The store for a key of the user's own: the one behind a Holdfast, or one on a client that is given as it is. */

import { UnsupportedError } from "./core/errors.js";
import { checkPrefix } from "./core/keys.js";
import { type Runtime, systemRuntime } from "./core/runtime.js";
import type { Store } from "./core/store.js";
import type { Holdfast } from "./holdfast.js";
import { anyInternalsOf } from "./internals.js";
import { type RedisClient, storeFor } from "./stores/detect.js";

export type { RedisClient } from "./stores/detect.js";

/** Where something is to be written, and how long to wait for the answer. */
export interface StoreOf {
  readonly store: Store;
  /** What keys of ours begin with there. */
  readonly prefix: string;
  readonly commandTimeoutMs: number;
  readonly runtime: Runtime;
}

/** One for each client, since each store listens to the client's connection. */
const stores = new WeakMap<object, Store>();

const COMMAND_TIMEOUT_MS = 2_000;

/**
 * @param redis   what `createHoldfast` returned, or a client that its owner closes
 * @param name    what it is about, for errors
 * @param prefix  for a client; a Holdfast has one
 * @throws TypeError         it is neither, or a Holdfast was given and a prefix
 * @throws UnsupportedError  a Holdfast on several independent servers
 * @throws ClosedError       a Holdfast that was closed
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
    throw new UnsupportedError(name, "What is kept on one server cannot be kept on several independent ones.");
  }
  if (prefix !== undefined) throw new TypeError(`prefix is for a client; this Holdfast has one: "${own}"`);
  session.assertOpen(name);
  return { store: session.store, prefix: own, commandTimeoutMs: session.commandTimeoutMs, runtime: session.runtime };
}
