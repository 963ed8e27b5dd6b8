/** Finds the period marker of a lock, on one server or several, and sends requests to these servers. */

import { QuorumError } from "../core/errors.js";
import { checkKey, checkName, type LockKeys, lockKeys, mappedKeys } from "../core/keys.js";
import type { Store } from "../core/store.js";
import type { Holdfast } from "../holdfast.js";
import { anyInternalsOf, type Internals } from "../internals.js";

/** The key of the marker of a lock, and the stores that hold it. */
export interface Place {
  readonly internals: Internals;
  readonly name: string;
  readonly marker: string;
  readonly stores: readonly Store[];
}

/**
 * Returns the key and the stores of a lock's marker.
 *
 * @param key  the `key` option of the mutex, if it has one
 * @throws TypeError, RangeError  an invalid name or key
 * @throws ClosedError  the Holdfast instance was closed
 */
export function placeOf(holdfast: Holdfast, name: string, key: string | undefined): Place {
  const found = anyInternalsOf(holdfast);
  checkName(name);
  if (key !== undefined) checkKey(key);
  found.session.assertOpen(name);
  const stores = found.servers ?? [found.session.store];
  return { internals: found, name, marker: keysOf(found.prefix, "period-marker", name, key).base, stores };
}

/** Returns the keys of the given kind for a lock: from its `key` option if it has one, otherwise from its name. */
export function keysOf(prefix: string, kind: string, name: string, key: string | undefined): LockKeys {
  return key === undefined ? lockKeys(prefix, kind, name) : mappedKeys(prefix, kind, key);
}

/** Returns how many servers make up a majority. */
export function majorityOf({ stores }: Place): number {
  return Math.floor(stores.length / 2) + 1;
}

/**
 * Sends a request to each server. A majority of them must reply.
 *
 * @returns the replies that arrived
 * @throws StoreError   the only server did not reply
 * @throws QuorumError  no reply from a majority of the servers
 */
export async function onMajority<Answer>(
  place: Place,
  ask: (store: Store) => Promise<Answer>,
): Promise<readonly Answer[]> {
  const [only, ...others] = place.stores;
  if (only !== undefined && others.length === 0) return [await ask(only)];
  const ends = await Promise.allSettled(place.stores.map(ask));
  const answers = ends.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  if (answers.length >= majorityOf(place)) return answers;
  throw new QuorumError(place.name, {
    answers: ends.map((one, server) => {
      const error: unknown = one.status === "rejected" ? one.reason : undefined;
      return { server, answer: error === undefined ? "done" : "error", leaseLeftMs: undefined, error };
    }),
    mayHaveRun: true,
    transient: true,
  });
}
