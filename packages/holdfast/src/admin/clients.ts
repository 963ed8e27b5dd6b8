/** Lists the clients that hold or wait for locks, with their records. */

import { parseOwner } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import type { LockEntry, LockKind } from "./entry.js";
import { eachOf, type Place, placeOf } from "./place.js";
import { newestRecord } from "./read-client.js";
import { KeyScan, START } from "./scan.js";
import { surveyAll } from "./survey.js";

/** A hold or a wait of a client. */
export interface ClientClaim {
  /** The kind of the lock. */
  readonly kind: LockKind;
  /** The name of the lock. */
  readonly name: string;
  /** The `key` option of a mutex. */
  readonly key: string | undefined;
  /** The owner id of the hold or the wait. */
  readonly owner: string;
  /** The fencing token of the hold. Undefined for a wait. */
  readonly token: number | undefined;
  /** Server time at which the hold or the wait began, in ms since 1970. Undefined if unknown. */
  readonly sinceAtMs: number | undefined;
}

/** A client: one Holdfast instance of a process. The data comes from its record and from the locks. */
export interface ClientEntry {
  /** The id of the client, the first part of its owner ids. */
  readonly clientId: string;
  /**
   * The host of the process. This field and all others down to `lastSeenAtMs` are undefined if the client has no record
   * and is known only from a lock.
   */
  readonly host: string | undefined;
  /** The process id on that host. */
  readonly pid: number | undefined;
  /** The `clientName` option. */
  readonly clientName: string | undefined;
  /** The version of the library. */
  readonly version: string | undefined;
  /** The version of the protocol: keys, messages and owner ids. 0 for clients that predate protocol versions. */
  readonly protocol: number | undefined;
  /** Server time at which the client started, in ms since 1970. */
  readonly sinceAtMs: number | undefined;
  /** Server time at which the client last wrote its record, in ms since 1970. */
  readonly lastSeenAtMs: number | undefined;
  /**
   * Whether the client has written its record within the last minute. A client that holds or waits for a lock writes
   * its record every 20 s. If such a client has no recent record, it has crashed or is disconnected. A client without
   * locks writes no record.
   */
  readonly isHeardOf: boolean;
  /** The locks that the client holds. */
  readonly held: readonly ClientClaim[];
  /** The waits of the client. For each lock, only the first 100 waiters are read. */
  readonly waits: readonly ClientClaim[];
}

/** Options of `clients`. */
export interface ClientsOptions {
  /** The locks from `surveyAll`, if you already have them. @default the result of a new `surveyAll` */
  readonly locks?: readonly LockEntry[] | undefined;
}

const AT_ONCE = 50;
/** Maximum number of clients to find by their records. */
const MOST_CLIENTS = 10_000;

/**
 * Lists the clients under the prefix that have a record or a lock, ordered by host and process id. It finds up to about
 * 10,000 clients by their records, with SCAN on every primary as `survey` does, plus every client that a lock names.
 * Read-only.
 *
 * @throws StoreError   no server replied
 * @throws ClosedError  this Holdfast was closed
 */
export async function clients(holdfast: Holdfast, options: ClientsOptions = {}): Promise<readonly ClientEntry[]> {
  const { locks } = checkKnown(options, ["locks"]);
  const place = { ...placeOf(holdfast), lost: new Set<Store>() };
  const [ids, surveyed] = await Promise.all([idsOf(place), locks ?? surveyAll(holdfast).then((all) => all.locks)]);
  const claims = claimsIn(surveyed);
  const all = [...new Set([...ids, ...claims.keys()])];
  const entries = await eachOf(all, AT_ONCE, async (clientId) => {
    const record = await newestRecord(place, clientId);
    const { held = [], waits = [] } = claims.get(clientId) ?? {};
    return { clientId, ...record, held, waits };
  });
  return entries.toSorted((one, other) => {
    return (one.host ?? "~").localeCompare(other.host ?? "~") || (one.pid ?? 0) - (other.pid ?? 0);
  });
}

async function idsOf(place: Place): Promise<readonly string[]> {
  const scan = new KeyScan(place, { shape: ":client:*", kinds: ["client"], text: "", includeFree: false });
  const ids = new Set<string>();
  let progress = START;
  while (!progress.isOver && ids.size < MOST_CLIENTS) {
    const page = await scan.page(progress, 1_000);
    progress = page.progress;
    for (const rest of page.rests) ids.add(rest.slice("client:".length));
  }
  return [...ids];
}

type Claims = Map<string, { readonly held: ClientClaim[]; readonly waits: ClientClaim[] }>;

function claimsIn(locks: readonly LockEntry[]): Claims {
  const claims: Claims = new Map();
  const add = (
    lock: LockEntry,
    what: "held" | "waits",
    one: Pick<ClientClaim, "owner" | "sinceAtMs"> & { readonly token?: number | undefined },
  ): void => {
    const clientId = parseOwner(one.owner)?.clientId;
    if (clientId === undefined) return;
    const its = claims.get(clientId) ?? { held: [], waits: [] };
    claims.set(clientId, its);
    const { kind, name, key } = lock;
    its[what].push({ kind, name, key, owner: one.owner, token: one.token, sinceAtMs: one.sinceAtMs });
  };
  for (const lock of locks) {
    for (const holder of lock.holders) add(lock, "held", holder);
    for (const waiter of lock.waiters) add(lock, "waits", waiter);
    for (const { waiters } of lock.conditions) for (const waiter of waiters) add(lock, "waits", waiter);
  }
  return claims;
}
