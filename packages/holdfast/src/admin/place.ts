/** The servers and settings of a Holdfast, for the functions that inspect all its locks. */

import { call } from "../core/call.js";
import type { RecordReader } from "../core/inspection.js";
import { parseOwner } from "../core/protocol.js";
import type { ClientRecord } from "../core/session.js";
import type { Store } from "../core/store.js";
import { adminHere } from "../generated/admin.js";
import type { Holdfast } from "../holdfast.js";
import { anyInternalsOf, type Internals } from "../internals.js";
import { type FullRecord, NO_RECORD, newestRecord } from "./read-client.js";

/** The internals of a Holdfast that the functions of `holdfast/admin` need. */
export interface Place extends Internals {
  readonly holdfast: Holdfast;
  /** One store for a single server or a cluster, or one for each of several independent servers. */
  readonly stores: readonly Store[];
  /** The timeout of a request, in ms. */
  readonly timeoutMs: number;
  /** When listing from several independent servers: the servers that did not reply. They are not asked again. */
  readonly lost?: Set<Store>;
}

/** Reads the records of the clients that appear in a list. */
export interface Identities extends RecordReader {
  /** Returns whether an owner's client has no readable record, or has not written one for a minute. Never rejects. */
  isSilent(owner: string): Promise<boolean>;
  /**
   * Returns the time at which an owner's client last wrote its record; undefined if the client is alive or unknown.
   * Never rejects.
   */
  goneSinceAtMs(owner: string): Promise<number | undefined>;
}

/** Returns the place of a Holdfast. @throws TypeError  not created by `createHoldfast`; @throws ClosedError */
export function placeOf(holdfast: Holdfast): Place {
  const found = anyInternalsOf(holdfast);
  found.session.assertOpen(found.prefix);
  const { session, servers = [session.store] } = found;
  return { ...found, holdfast, stores: servers, timeoutMs: session.commandTimeoutMs };
}

/** Returns a reader of client records. It reads each record once, even if several locks name the client. */
export function identitiesOf(place: Place): Identities {
  const { session, timeoutMs } = place;
  const known = new Map<string, Promise<FullRecord>>();
  const read = (clientId: string): Promise<FullRecord> => {
    const reading = known.get(clientId) ?? newestRecord(place, clientId);
    known.set(clientId, reading);
    return reading;
  };
  const recordOf = async (owner: string): Promise<FullRecord> => {
    const clientId = parseOwner(owner)?.clientId;
    return clientId === undefined ? NO_RECORD : await read(clientId).catch(() => NO_RECORD);
  };
  return {
    commandTimeoutMs: timeoutMs,
    runtime: session.runtime,
    records: {
      announce: (keepMs) => session.records.announce(keepMs),
      async read(clientId): Promise<ClientRecord | undefined> {
        const { host, pid, clientName, protocol } = await read(clientId);
        return host === undefined ? undefined : { host, pid: pid ?? 0, clientName, protocol: protocol ?? 0 };
      },
    },
    async isSilent(owner) {
      return !(await recordOf(owner)).isHeardOf;
    },
    async goneSinceAtMs(owner) {
      const { isHeardOf, lastSeenAtMs } = await recordOf(owner);
      return isHeardOf ? undefined : lastSeenAtMs;
    },
  };
}

/**
 * Asks a server for the prefix that the client library adds to each key, and for the server's time in ms since 1970.
 *
 * @throws StoreError
 */
export async function hereOf(
  store: Store,
  { prefix, timeoutMs }: Pick<Place, "prefix" | "timeoutMs">,
): Promise<{ readonly keyPrefix: string; readonly nowMs: number }> {
  const key = `${prefix}:`;
  const { names, nowMs } = await call({ store, name: prefix }, adminHere, { key }, {}, timeoutMs);
  const [arrived = key] = names;
  return { keyPrefix: arrived.slice(0, arrived.length - key.length), nowMs };
}

/**
 * Runs `work` for each item, `atOnce` at a time. Returns the results in the order of the items.
 *
 * @throws the first error from `work`
 */
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
