/** Where the locks of a Holdfast are, for whoever looks at all of them. */

import { adminHere } from "../generated/admin-scripts.js";
import type { Holdfast, Store } from "../index.js";
import { type Asked, anyInternalsOf, type ClientRecord, call, type Internals } from "../internal.js";
import { nothingIfMistyped } from "./mistyped.js";

/** See the file header. */
export interface Place extends Internals {
  readonly holdfast: Holdfast;
  /** One of one server or cluster; or one for each of several independent servers. */
  readonly stores: readonly Store[];
  /** Longest wait for one answer, in ms. */
  readonly timeoutMs: number;
}

/** What to ask about the clients that a list names. */
export type Identities = Asked;

/** @throws TypeError  it is not what `createHoldfast` has returned. @throws ClosedError */
export function placeOf(holdfast: Holdfast): Place {
  const found = anyInternalsOf(holdfast);
  found.session.assertOpen(found.prefix);
  const { session, servers = [session.store] } = found;
  return { ...found, holdfast, stores: servers, timeoutMs: session.commandTimeoutMs };
}

/** Records of clients, each read once however many locks name it. */
export function identitiesOf({ session, timeoutMs }: Place): Identities {
  const known = new Map<string, Promise<ClientRecord | undefined>>();
  return {
    commandTimeoutMs: timeoutMs,
    runtime: session.runtime,
    records: {
      announce: (keepMs) => session.records.announce(keepMs),
      read(clientId) {
        const reading = known.get(clientId) ?? session.records.read(clientId, timeoutMs).catch(nothingIfMistyped);
        known.set(clientId, reading);
        return reading;
      },
    },
  };
}

/** What a server says of itself: what its client puts before each key, and its time, in ms since 1970. @throws StoreError */
export async function hereOf(
  store: Store,
  { prefix, timeoutMs }: Pick<Place, "prefix" | "timeoutMs">,
): Promise<{ readonly keyPrefix: string; readonly nowMs: number }> {
  const key = `${prefix}:`;
  const { names, nowMs } = await call({ store, name: prefix }, adminHere, { key }, {}, timeoutMs);
  const [arrived = key] = names;
  return { keyPrefix: arrived.slice(0, arrived.length - key.length), nowMs };
}

/** Carries out `work` for each item, so many at a time, and gives what comes of them in order. @throws as the first that fails */
export async function eachOf<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as Item); // at < length
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return results;
}
