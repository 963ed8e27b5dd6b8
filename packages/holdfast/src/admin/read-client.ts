/** Reads the record of a client: its process, and when the client last wrote the record. */

import { call } from "../core/call.js";
import type { Store } from "../core/store.js";
import { adminReadClient } from "../generated/admin.js";
import { isMistyped } from "./mistyped.js";
import { onServers } from "./on-servers.js";

interface At {
  readonly stores: readonly Store[];
  readonly lost?: Set<Store>;
  readonly prefix: string;
  readonly timeoutMs: number;
}

/** Age at which a record is stale. A client that holds or waits for a lock writes its record every 20 s. */
export const SILENT_MS = 60_000;

/** What a client has written about itself. */
export interface FullRecord {
  readonly host: string | undefined;
  readonly pid: number | undefined;
  readonly clientName: string | undefined;
  readonly version: string | undefined;
  readonly protocol: number | undefined;
  readonly sinceAtMs: number | undefined;
  readonly lastSeenAtMs: number | undefined;
  /** Whether the record was written within the last minute. */
  readonly isHeardOf: boolean;
}

/** Used for a client that has no record. */
export const NO_RECORD: FullRecord = {
  host: undefined,
  pid: undefined,
  clientName: undefined,
  version: undefined,
  protocol: undefined,
  sinceAtMs: undefined,
  lastSeenAtMs: undefined,
  isHeardOf: false,
};

/**
 * Reads a client's record from every server, and returns the latest one.
 *
 * @throws StoreError  no server replied
 */
export async function newestRecord(place: At, clientId: string): Promise<FullRecord> {
  const reads = await onServers(place, (store) => recordOn(store, place, clientId));
  const found = reads.flatMap((read) => (read.status === "fulfilled" ? [read.value] : []));
  const [first] = reads;
  if (found.length === 0 && first?.status === "rejected" && !isMistyped(first.reason)) throw first.reason;
  return found.toSorted((one, other) => (other.lastSeenAtMs ?? 0) - (one.lastSeenAtMs ?? 0))[0] ?? NO_RECORD;
}

async function recordOn(store: Store, { prefix, timeoutMs }: At, clientId: string): Promise<FullRecord> {
  const client = `${prefix}:client:${clientId}`;
  const reply = await call({ store, name: client }, adminReadClient, { client }, {}, timeoutMs);
  if (reply.outcome === "gone") return NO_RECORD;
  const [host, pid, name, version, seen, since, protocol] = reply.texts;
  const msOf = (us: string | undefined): number | undefined => (us ? Math.floor(Number(us) / 1_000) : undefined);
  const lastSeenAtMs = msOf(seen);
  return {
    host,
    pid: Number(pid),
    clientName: name || undefined,
    version: version || undefined,
    protocol: Number(protocol),
    sinceAtMs: msOf(since),
    lastSeenAtMs,
    isHeardOf: lastSeenAtMs !== undefined && reply.nowMs - lastSeenAtMs < SILENT_MS,
  };
}
