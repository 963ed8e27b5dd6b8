/** Inspects a lock of any kind through its protocol, and returns its state in the same form for all kinds. */

import { barrierProtocol } from "../barrier/protocol.js";
import { inspectionOf } from "../condition/protocol.js";
import { call } from "../core/call.js";
import { serverOf } from "../core/events.js";
import type { Inspection, WaitingClaim } from "../core/inspection.js";
import { describe } from "../core/inspection.js";
import { lockKeys } from "../core/keys.js";
import { Lock } from "../core/lock.js";
import { type InspectProtocol, parseOwner, type State } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import { latchProtocol } from "../count-down-latch/protocol.js";
import { ElectionProtocol } from "../election/protocol.js";
import { adminWaiters } from "../generated/admin.js";
import { redlockInspect } from "../generated/redlock.js";
import { MutexProtocol } from "../mutex/protocol.js";
import type { PermitsState } from "../permits/protocol.js";
import { modeOf, readWriteLockProtocol } from "../read-write-lock/read-write-lock.js";
import { semaphoreProtocol } from "../semaphore/semaphore.js";
import type { EntryHolder, EntryWaiter, LockEntry, LockKind, LockMode, LockState } from "./entry.js";
import { keysOf, type Trace } from "./key-names.js";
import { isMistyped } from "./mistyped.js";
import { onServers } from "./on-servers.js";
import type { Identities, Place } from "./place.js";
import { brokenEntry, mistypedKeys, refusedEntry } from "./unreadable.js";

/** The lock to inspect. */
export type Whose = Pick<Trace, "kind" | "name" | "key">;

/** The parts of the state that only some kinds have. */
type Own = Partial<Pick<LockEntry, "permits" | "leader" | "count" | "barrier" | "servers">>;

interface Seen {
  readonly protocol: InspectProtocol;
  readonly state: State;
  readonly own: Own;
  /** The state if the lock has neither holders nor waiters. `counting` also applies if it has waiters. */
  readonly idle?: "counting" | "broken" | undefined;
  /** The key of the queue. */
  readonly queue?: string | undefined;
  /** Whether the lock's first key exists. Undefined for kinds whose first key exists only while there is a holder. */
  readonly isOnRecord?: boolean | undefined;
  /** Returns the mode and the permits of a claim with this weight. */
  readonly weigh?: (weight: number) => { readonly mode: LockMode; readonly permits: number };
}

/** The state of a lock, with the details that lists need. */
export interface Inspected {
  readonly entry: LockEntry;
  /** Whether the first key of the lock exists. The functions that list locks find it by this key. */
  readonly hasFirstKey: boolean;
  /** The error, if a server refused the read, or if too few servers replied to tell whether a Redlock is held. */
  readonly refusal?: unknown;
}

/** One server, or one cluster, to read a lock from. */
interface At extends Pick<Place, "prefix" | "timeoutMs"> {
  readonly store: Store;
}

/**
 * Inspects a lock. A lock that cannot be read is reported as broken, so that a list can still show the other locks.
 *
 * @param isFound  whether a list has found a key of the lock. A Redlock without a majority is then reported as broken
 *                 too
 * @throws StoreError   no server replied
 * @throws QuorumError  no majority of several independent servers replied
 */
export async function inspectLock(
  place: Place,
  whose: Whose,
  identities: Identities,
  isFound = false,
): Promise<Inspected> {
  try {
    return await readLock(place, whose, identities);
  } catch (error) {
    if (isMistyped(error)) return { entry: brokenEntry(whose, await mistypedKeys(place, whose)), hasFirstKey: true };
    const entry = refusedEntry(whose, error, isFound);
    if (entry === undefined) throw error;
    return { entry, hasFirstKey: true, refusal: error };
  }
}

async function readLock(place: Place, whose: Whose, identities: Identities): Promise<Inspected> {
  const { servers, prefix, timeoutMs } = place;
  const isQuorum = servers !== undefined;
  if (isQuorum && whose.kind === "redlock") {
    return await readFrom(
      { store: place.session.store, prefix, timeoutMs },
      whose,
      identities,
      await seeRedlock(place, whose),
    );
  }
  const each = await onServers(place, async (store) => {
    const at = { store, prefix, timeoutMs };
    return marked(await readFrom(at, whose, identities, await SEE[whose.kind](at, whose)), place, store);
  });
  const read = each.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = each.find((one) => one.status === "rejected");
  // Fail if no server replied. Report a key of an unexpected type even if other servers replied.
  if (failed !== undefined && (read.length === 0 || isMistyped(failed.reason))) throw failed.reason;
  return together(read);
}

/** Marks a lock that belongs to clients that use a different topology. */
function marked({ entry, hasFirstKey }: Inspected, { servers, stores }: Place, store: Store): Inspected {
  if (servers === undefined) {
    return { hasFirstKey, entry: entry.kind === "redlock" ? { ...entry, needsTopology: "redlock" } : entry };
  }
  const server = { index: stores.indexOf(store), address: addressOf(store) };
  return { hasFirstKey, entry: { ...entry, needsTopology: "single-server", server } };
}

function addressOf(store: Store): string | undefined {
  const server = serverOf(store);
  if (server === undefined) return undefined;
  if (server.port === undefined) return server.host;
  return server.host.includes(":") ? `[${server.host}]:${server.port}` : `${server.host}:${server.port}`;
}

/**
 * On several independent servers, a name stands for a separate lock on each server. These locks are shown as one, with
 * all holders and waiters.
 */
function together(read: readonly Inspected[]): Inspected {
  const [first = read[0] as Inspected, ...others] = read.toSorted((a, b) => rankOf(b) - rankOf(a)); // one was read
  const rest = others.filter((one) => rankOf(one) > 0).map(({ entry }) => entry);
  const { server: _, ...entry } = first.entry;
  // A lock that is free on every server may still have waiters for a condition, on any of them.
  if (rankOf(first) === 0) return { ...first, entry };
  if (rest.length === 0) return first;
  const all = [first.entry, ...rest];
  return {
    hasFirstKey: true,
    entry: {
      ...entry,
      perServer: all,
      holders: all.flatMap(({ holders }) => holders),
      waiters: all.flatMap(({ waiters }) => waiters),
      waiterCount: all.reduce((sum, { waiterCount }) => sum + waiterCount, 0),
    },
  };
}

function rankOf({ entry: { state, holders } }: Inspected): number {
  return holders.length > 0 ? 2 : state === "free" ? 0 : 1;
}

async function readFrom(at: At, whose: Whose, identities: Identities, seen: Seen): Promise<Inspected> {
  const { protocol, state, own, idle, weigh = () => ({ mode: "exclusive", permits: 1 }) } = seen;
  const found: Inspection = await describe(identities, protocol, state);
  const holders = await Promise.all(
    found.holders.map(async (holder, i): Promise<EntryHolder> => {
      const held = state.holders[i];
      const { weight = 1, slots = [] } = (held ?? {}) as Partial<PermitsState["holders"][number]>;
      return { ...holder, ...weigh(weight), slots, goneSinceAtMs: await identities.goneSinceAtMs(holder.owner) };
    }),
  );
  const arrivals = await arrivalsIn(at, whose.name, found.waiterCount > 0 ? seen.queue : undefined);
  const waiters = await Promise.all(
    found.waiters.map((waiter) =>
      entryWaiter(waiter, weigh(parseOwner(waiter.owner)?.amount ?? 1), arrivals, identities),
    ),
  );
  const entry: LockEntry = {
    kind: whose.kind,
    name: whose.name,
    key: whose.key,
    state: found.pause === undefined ? stateOf(whose.kind, holders.length, found.waiterCount, idle) : "paused",
    mode: holders[0]?.mode,
    token: found.token,
    holders,
    waiterCount: found.waiterCount,
    waiters,
    permits: own.permits,
    pause: found.pause,
    label: found.pause?.label ?? holders[0]?.label,
    conditions: [],
    leader: own.leader,
    count: own.count,
    barrier: own.barrier,
    ...(own.servers === undefined ? {} : { servers: own.servers }),
  };
  // The first key of a lock with the `key` option lacks Holdfast's prefix, so lists find the lock by its token key.
  const hasFirstKey =
    whose.key === undefined ? (seen.isOnRecord ?? state.holders.length > 0) : entry.token !== undefined;
  return { entry, hasFirstKey };
}

async function entryWaiter(
  waiter: WaitingClaim,
  weighed: Pick<EntryWaiter, "mode" | "permits">,
  arrivals: ReadonlyMap<string, number>,
  identities: Identities,
): Promise<EntryWaiter> {
  const { owner } = waiter;
  return {
    ...waiter,
    ...weighed,
    sinceAtMs: arrivals.get(owner),
    goneSinceAtMs: await identities.goneSinceAtMs(owner),
  };
}

/** Maximum number of waiters per lock for which to read arrival times. */
const MOST_WAITERS = 100;
/** No arrival time is below this value. Lower values are sequence numbers, used if a signal started the queue. */
const FIRST_TIME_US = 1e15;

/**
 * Returns the times in ms since 1970 at which the first waiters joined a queue, by owner. Empty if the queue has no
 * times.
 *
 * @throws StoreError
 */
async function arrivalsIn(
  { store, timeoutMs }: Pick<At, "store" | "timeoutMs">,
  name: string,
  queue: string | undefined,
): Promise<ReadonlyMap<string, number>> {
  if (queue === undefined) return new Map();
  const { texts } = await call({ store, name }, adminWaiters, { queue }, { most: MOST_WAITERS }, timeoutMs);
  const arrivals = new Map<string, number>();
  for (let at = 0; at + 1 < texts.length; at += 2) {
    const arrivalUs = Number(texts[at + 1]);
    if (arrivalUs >= FIRST_TIME_US) arrivals.set(texts[at] ?? "", Math.floor(arrivalUs / 1_000));
  }
  return arrivals;
}

function stateOf(kind: LockKind, holders: number, waiters: number, idle: Seen["idle"]): LockState {
  if (holders > 0) return "held";
  if (idle === "counting") return idle;
  if (waiters > 0) return kind === "barrier" ? "gathering" : "awaited";
  return idle ?? "free";
}

/**
 * Returns the waiters for a condition of a mutex, or the condition's key if the key has an unexpected type.
 *
 * @throws StoreError
 */
export async function inspectCondition(
  place: Place,
  whose: Whose,
  condition: string,
  identities: Identities,
): Promise<LockEntry["conditions"][number] | { readonly unreadable: string }> {
  try {
    return await readCondition(place, whose, condition, identities);
  } catch (error) {
    if (!isMistyped(error)) throw error;
    return { unreadable: `${keysOf(place.prefix, whose).base}:condition:${encodeURIComponent(condition)}` };
  }
}

async function readCondition(
  place: Place,
  whose: Whose,
  condition: string,
  identities: Identities,
): Promise<LockEntry["conditions"][number]> {
  const { prefix, timeoutMs } = place;
  const keys = keysOf(prefix, whose);
  const key = `${keys.base}:condition:${encodeURIComponent(condition)}`;
  const reads = await onServers(place, async (store) => {
    const mutex = new MutexProtocol({ store, name: whose.name, key: whose.key, keys, inbox: "" });
    const protocol = inspectionOf({ store, mutex, ...mutex.keys, condition: key, inbox: "" });
    const found = await describe(identities, protocol, await protocol.inspect(undefined, timeoutMs));
    const arrivals = await arrivalsIn({ store, timeoutMs }, whose.name, found.waiterCount > 0 ? key : undefined);
    const weighed = { mode: "exclusive", permits: 1 } as const;
    const waiters = found.waiters.map((waiter) => entryWaiter(waiter, weighed, arrivals, identities));
    return { waiterCount: found.waiterCount, waiters: await Promise.all(waiters) };
  });
  const each = reads.flatMap((read) => (read.status === "fulfilled" ? [read.value] : []));
  const failed = reads.find((read) => read.status === "rejected");
  if (failed !== undefined && (each.length === 0 || isMistyped(failed.reason))) throw failed.reason;
  return {
    name: condition,
    waiterCount: each.reduce((sum, { waiterCount }) => sum + waiterCount, 0),
    waiters: each.flatMap(({ waiters }) => waiters),
  };
}

/**
 * Inspects each kind through its protocol. These protocols never wait, so they need no inbox. Declared values, such as
 * the number of permits, do not affect the result.
 */
const SEE: { readonly [Kind in LockEntry["kind"]]: (at: At, whose: Whose) => Promise<Seen> } = {
  async mutex({ store, prefix, timeoutMs }, { kind, name, key }) {
    const protocol = new MutexProtocol({ store, name, key, keys: keysOf(prefix, { kind, name, key }), inbox: "" });
    return { protocol, state: await protocol.inspect(undefined, timeoutMs), own: {}, queue: protocol.keys.queue };
  },

  async election({ store, prefix, timeoutMs }, whose) {
    const protocol = new ElectionProtocol({ store, name: whose.name, keys: keysOf(prefix, whose), inbox: "" });
    const [state, leader] = await Promise.all([protocol.inspect(undefined, timeoutMs), protocol.leader(timeoutMs)]);
    const own = leader === undefined ? {} : { leader: { value: leader.value, term: leader.term } };
    return { protocol, state, own, queue: protocol.keys.queue };
  },

  async semaphore({ store, prefix, timeoutMs }, whose) {
    const protocol = semaphoreProtocol({
      store,
      name: whose.name,
      keys: keysOf(prefix, whose),
      inbox: "",
      declared: 1,
    });
    const state = await protocol.inspect(undefined, timeoutMs);
    const isOnRecord = state.capacity !== undefined;
    const weigh = (permits: number): ReturnType<NonNullable<Seen["weigh"]>> => ({ mode: "shared", permits });
    return {
      protocol,
      state,
      own: { permits: { limit: state.capacity, used: state.used } },
      weigh,
      isOnRecord,
      queue: `${protocol.key}:queue`,
    };
  },

  async "read-write-lock"({ store, prefix, timeoutMs }, whose) {
    const protocol = readWriteLockProtocol({ store, name: whose.name, keys: keysOf(prefix, whose), inbox: "" });
    const weigh = (weight: number): ReturnType<NonNullable<Seen["weigh"]>> => {
      return { mode: modeOf(weight) === "read" ? "shared" : "exclusive", permits: 1 };
    };
    const state = await protocol.inspect(undefined, timeoutMs);
    return {
      protocol,
      state,
      own: {},
      weigh,
      isOnRecord: state.capacity !== undefined,
      queue: `${protocol.key}:queue`,
    };
  },

  async "count-down-latch"({ store, prefix, timeoutMs }, whose) {
    const { base } = keysOf(prefix, whose);
    const protocol = latchProtocol({ store, name: whose.name, base, inbox: "", keepMs: 1 });
    const state = await protocol.inspect(undefined, timeoutMs);
    const queue = `${base}:waiters`;
    if (state.initialCount === 0) return { protocol, state, own: {}, isOnRecord: false, queue };
    const own = { count: { left: state.count, initial: state.initialCount } };
    const seen: Seen = { protocol, state, own, isOnRecord: true, queue };
    return state.count > 0 ? { ...seen, idle: "counting" } : seen;
  },

  async barrier({ store, prefix, timeoutMs }, whose) {
    const { base } = keysOf(prefix, whose);
    const protocol = barrierProtocol({ store, name: whose.name, base, inbox: "", parties: 1 });
    const state = await protocol.inspect(undefined, timeoutMs);
    const { parties, generation, broken } = state;
    if (parties === undefined) return { protocol, state, own: {}, isOnRecord: false };
    const seen: Seen = {
      protocol,
      state,
      own: { barrier: { parties, generation, broken: broken?.reason } },
      isOnRecord: true,
    };
    return broken === undefined ? seen : { ...seen, idle: "broken" };
  },

  // What one server of a Redlock knows: the last claim that it voted for.
  async redlock({ store, prefix, timeoutMs }, { kind, name }) {
    const { lock, base } = lockKeys(prefix, kind, name);
    const keys = { lock, fence: `${base}:fence` };
    const reply = await call({ store, name }, redlockInspect, keys, {}, timeoutMs);
    const { token, leftMs } = reply;
    const owners = reply.outcome === "held" ? reply.owner : [];
    const leaseLeftMs = leftMs < 0 ? Number.POSITIVE_INFINITY : leftMs;
    const state: State = {
      holders: owners.map((owner) => ({ owner, token, leaseLeftMs, isUntimed: true })),
      token: token > 0 ? token : undefined,
      waiterCount: 0,
      waiters: [],
      ahead: undefined,
    };
    const protocol = { kind, name, inspect: async () => state };
    return { protocol, state, own: {} };
  },
};

/** Returns what a majority of several independent servers knows about a Redlock. @throws QuorumError */
async function seeRedlock({ holdfast, stores, timeoutMs }: Place, { name }: Whose): Promise<Seen> {
  const { protocol } = Lock.partsOf(holdfast.redlock(name));
  const state = await protocol.inspect(undefined, timeoutMs);
  return {
    protocol,
    state,
    own: state.votes === undefined ? {} : { servers: { ...state.votes, total: stores.length } },
  };
}
