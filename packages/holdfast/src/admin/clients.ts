/** The processes that hold and wait: their records, and what they have. */

import { adminReadClient } from "../generated/admin-scripts.js";
import type { Holdfast, Store } from "../index.js";
import { call, checkKnown, parseOwner } from "../internal.js";
import type { LockEntry, LockKind } from "./entry.js";
import { isMistyped } from "./mistyped.js";
import { eachOf, type Place, placeOf } from "./place.js";
import { KeyScan, START } from "./scan.js";
import { surveyAll } from "./survey.js";

/** What a client has of a lock. */
export interface ClientClaim {
  readonly kind: LockKind;
  readonly name: string;
  /** The `key` option of a mutex. */
  readonly key: string | undefined;
  readonly owner: string;
  /** Undefined for who waits. */
  readonly token: number | undefined;
  /** Of a hold: since when; of a wait where that is known. By the server's clock, in ms since 1970. */
  readonly sinceAtMs: number | undefined;
}

/** One Holdfast of some process, as its own record and the locks tell. */
export interface ClientEntry {
  readonly clientId: string;
  /** Undefined, as all up to `lastSeenAtMs`, where the record is gone and only a lock still names it. */
  readonly host: string | undefined;
  readonly pid: number | undefined;
  /** The `clientName` option. */
  readonly clientName: string | undefined;
  /** Of the library. */
  readonly version: string | undefined;
  /** Version of the protocol: of keys, messages and owner ids. 0 for clients from before there were versions. */
  readonly protocol: number | undefined;
  /** Since when it is there, by the server's clock, in ms since 1970. */
  readonly sinceAtMs: number | undefined;
  /** When it last wrote its record, by the server's clock, in ms since 1970. */
  readonly lastSeenAtMs: number | undefined;
  /**
   * Whether it has written its record within a minute. Who holds or waits writes it every 20 s, so what has locks and is silent
   * has died, or is cut off; who does neither writes nothing.
   */
  readonly isHeardOf: boolean;
  readonly held: readonly ClientClaim[];
  /** As far as they are among the first 100 that wait for a name. */
  readonly waits: readonly ClientClaim[];
}

/** Which locks to count. */
export interface ClientsOptions {
  /** As `surveyAll` gave them, for who has them already. @default a survey of its own, of all locks */
  readonly locks?: readonly LockEntry[] | undefined;
}

const AT_ONCE = 50;
/** How many records are read. */
const MOST_CLIENTS = 10_000;
/** Three times as long as the pause between two records of who holds or waits. */
const SILENT_MS = 60_000;

/**
 * All clients of the prefix that have a record, or a lock, in the order of their hosts and process ids; up to 10,000. By SCAN
 * over every primary, as `survey`. Changes nothing.
 *
 * @throws StoreError   no server answered
 * @throws ClosedError  this Holdfast was closed
 */
export async function clients(holdfast: Holdfast, options: ClientsOptions = {}): Promise<readonly ClientEntry[]> {
  const { locks } = checkKnown(options, ["locks"]);
  const place = placeOf(holdfast);
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

type Record = Omit<ClientEntry, "clientId" | "held" | "waits">;

const NO_RECORD: Record = {
  host: undefined,
  pid: undefined,
  clientName: undefined,
  version: undefined,
  protocol: undefined,
  sinceAtMs: undefined,
  lastSeenAtMs: undefined,
  isHeardOf: false,
};

/** Of several independent servers each has the record, or had it. @throws StoreError  none answered */
async function newestRecord(place: Place, clientId: string): Promise<Record> {
  const reads = await Promise.allSettled(place.stores.map((store) => recordOn(store, place, clientId)));
  const found = reads.flatMap((read) => (read.status === "fulfilled" ? [read.value] : []));
  const [first] = reads;
  if (found.length === 0 && first?.status === "rejected" && !isMistyped(first.reason)) throw first.reason;
  return found.toSorted((one, other) => (other.lastSeenAtMs ?? 0) - (one.lastSeenAtMs ?? 0))[0] ?? NO_RECORD;
}

async function recordOn(store: Store, { prefix, timeoutMs }: Place, clientId: string): Promise<Record> {
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
