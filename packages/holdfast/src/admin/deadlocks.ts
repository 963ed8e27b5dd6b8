/**
 * Finds possible deadlocks: cycles of clients in which each client waits for a lock that the next one holds.
 *
 * The locks are read one after the other, so a single list can show a cycle that never existed. Therefore
 * `findDeadlocks` reads them again if there is a cycle, and reports only cycles whose holds and waits are the same in
 * both lists.
 */

import { checkWhole } from "../core/options.js";
import { parseOwner } from "../core/protocol.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import type { EntryHolder, EntryServer, EntryWaiter, LockEntry, LockKind } from "./entry.js";
import { placeOf } from "./place.js";
import { idOf, surveyAll } from "./survey.js";

/** A hold or a wait that is part of a possible deadlock. */
export interface DeadlockClaim {
  /** The kind of the lock. */
  readonly kind: LockKind;
  /** The name of the lock. */
  readonly name: string;
  /** The `key` option of a mutex. */
  readonly key: string | undefined;
  /** The owner id of the hold or the wait. */
  readonly owner: string;
  /** The `label` option of the acquire. */
  readonly label: string | undefined;
  /** Server time at which the hold or the wait began, in ms since 1970. Undefined if unknown. */
  readonly sinceAtMs: number | undefined;
  /** Present if this Holdfast cannot release the lock, as in `LockEntry`. */
  readonly needsTopology?: NonNullable<LockEntry["needsTopology"]>;
  /** Present if this Holdfast uses several independent servers: the one that has the lock, as in `LockEntry`. */
  readonly server?: EntryServer;
}

/** A client in a possible deadlock. */
export interface DeadlockMember {
  /** The id of the client, the first part of its owner ids. */
  readonly clientId: string;
  /** The host of the process. Like `pid`, undefined if the client's record cannot be read. */
  readonly host: string | undefined;
  /** The process id on that host. */
  readonly pid: number | undefined;
  /** The `clientName` option. */
  readonly clientName: string | undefined;
  /** The lock that this member holds and the previous member waits for. */
  readonly holds: DeadlockClaim & {
    /** The fencing token of the hold. */
    readonly token: number | undefined;
    /** The time until the lease ends if it is not renewed, in ms. */
    readonly leaseLeftMs: number;
  };
  /** The lock that this member waits for and the next member holds. */
  readonly waits: DeadlockClaim;
}

/** A possible deadlock. */
export interface Deadlock {
  /**
   * The clients. Each waits for the lock of the next one, and the last waits for the lock of the first. The first has
   * held its lock for the shortest time, so releasing that lock loses the least work.
   */
  readonly members: readonly DeadlockMember[];
  /** Server time at which the last of these waits began, in ms since 1970. Undefined if unknown. */
  readonly sinceAtMs: number | undefined;
}

/** All possible deadlocks, from `findDeadlocks`. */
export interface FoundDeadlocks {
  /** The cycles, oldest first. A wait appears in one cycle at most. */
  readonly deadlocks: readonly Deadlock[];
  /** False if some locks were not read. Cycles that involve them are missing. */
  readonly isComplete: boolean;
  /** The number of servers that did not reply. Cycles that involve their locks are missing. */
  readonly unreachable: number;
}

/** Options of `findDeadlocks`. */
export interface DeadlockOptions {
  /**
   * How long to wait between the two reads, in ms. A longer time rules out more cycles that end by themselves. A whole
   * number from 0 to 60,000.
   * @default 500
   */
  readonly betweenMs?: number | undefined;
  /**
   * The locks from `surveyAll`, if you already have them, for the first read.
   * @default the result of a new `surveyAll`
   */
  readonly locks?: readonly LockEntry[] | undefined;
}

/** Kinds in which waiters wait for holders. */
const KINDS: readonly LockKind[] = ["mutex", "semaphore", "read-write-lock", "election"];
/** Maximum number of waits from which to search for a cycle. */
const MOST_STARTS = 1_000;

/**
 * Finds cycles of clients that wait for each other's locks. Read-only. If the first read shows no cycle, there is no
 * second read.
 *
 * Each cycle is only a possible deadlock. The servers know which client holds or waits, but not which task in it. If a
 * client holds the lock in one task and waits in another, independent task, the cycle is not a deadlock. These cases
 * are excluded:
 *
 * - a wait that began before the hold, because then two tasks are involved
 * - a wait for a semaphore if clients outside the cycle hold enough of its permits
 * - clients that are gone
 *
 * It does not see waits for a Redlock, because no server records them. It sees only the first 100 waiters of each lock.
 *
 * @throws StoreError   no server replied
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  invalid option; nothing was sent
 */
export async function findDeadlocks(holdfast: Holdfast, options: DeadlockOptions = {}): Promise<FoundDeadlocks> {
  const { betweenMs = 500, locks } = checkKnown(options, ["betweenMs", "locks"]);
  checkWhole("betweenMs", betweenMs, 0, 60_000);
  const { session } = placeOf(holdfast);
  const first =
    locks === undefined ? await surveyAll(holdfast, { kinds: KINDS }) : { locks, isComplete: true, unreachable: 0 };
  const { isComplete, unreachable } = first;
  if (cyclesIn(first.locks).length === 0) return { deadlocks: [], isComplete, unreachable };
  await new Promise<void>((resolve) => void session.runtime.startTimer(resolve, betweenMs, true));
  const again = await surveyAll(holdfast, { kinds: KINDS });
  return {
    deadlocks: cyclesIn(inBoth(apart(first.locks), apart(again.locks))),
    isComplete: isComplete && again.isComplete,
    unreachable: Math.max(unreachable, again.unreachable),
  };
}

/**
 * Separates locks that share a kind and a name but are on different servers. A client with such locks uses only one
 * server, so its claims need no separation.
 */
function apart(locks: readonly LockEntry[]): readonly LockEntry[] {
  return locks.flatMap((lock) => lock.perServer ?? [lock]);
}

/** Returns the second list with only the holds and waits that are also in the first. */
function inBoth(before: readonly LockEntry[], after: readonly LockEntry[]): readonly LockEntry[] {
  const known = new Set<string>();
  const holdOf = (lock: LockEntry, { owner, token }: EntryHolder): string => `${idOf(lock)} held ${owner} ${token}`;
  const waitOf = (lock: LockEntry, { owner }: EntryWaiter): string => `${idOf(lock)} awaited ${owner}`;
  for (const lock of before) {
    for (const holder of lock.holders) known.add(holdOf(lock, holder));
    for (const waiter of lock.waiters) known.add(waitOf(lock, waiter));
  }
  return after.map((lock) => ({
    ...lock,
    holders: lock.holders.filter((holder) => known.has(holdOf(lock, holder))),
    waiters: lock.waiters.filter((waiter) => known.has(waitOf(lock, waiter))),
  }));
}

/** A client's wait for a lock that others hold. */
interface Wait {
  readonly clientId: string;
  readonly lock: LockEntry;
  readonly waiter: EntryWaiter;
  /** Holds of other clients that keep it waiting. */
  readonly blockers: readonly Blocker[];
}

interface Blocker {
  readonly clientId: string;
  readonly holder: EntryHolder;
}

/** A wait in a cycle, and the hold of the same client that blocks the previous wait. */
interface Step {
  readonly holder: EntryHolder;
  readonly held: LockEntry;
  readonly wait: Wait;
}

/** Returns the cycles among these locks, oldest first. A wait appears in one cycle at most. */
export function cyclesIn(locks: readonly LockEntry[]): readonly Deadlock[] {
  const waits = stuckAmong(apart(locks).flatMap(waitsFor));
  const byClient = grouped(waits);
  const done = new Set<Wait>();
  const found: Deadlock[] = [];
  for (const wait of waits.slice(0, MOST_STARTS)) {
    const cycle = done.has(wait) ? undefined : shortestFrom(wait, byClient);
    if (cycle === undefined) continue;
    for (const step of cycle) done.add(step.wait);
    found.push(deadlockOf(cycle));
  }
  return found.toSorted((a, b) => (a.sinceAtMs ?? 0) - (b.sinceAtMs ?? 0));
}

type ByClient = ReadonlyMap<string, readonly Wait[]>;

function grouped(waits: readonly Wait[]): ByClient {
  const byClient = new Map<string, Wait[]>();
  for (const wait of waits) {
    const its = byClient.get(wait.clientId) ?? [];
    its.push(wait);
    byClient.set(wait.clientId, its);
  }
  return byClient;
}

function waitsFor(lock: LockEntry): readonly Wait[] {
  if (!KINDS.includes(lock.kind) || lock.pause !== undefined) return [];
  const holders = lock.holders.flatMap((holder): Blocker[] => {
    const clientId = parseOwner(holder.owner)?.clientId;
    // A client that is gone blocks others only until its lease ends, so ignore it.
    return clientId === undefined || holder.goneSinceAtMs !== undefined ? [] : [{ clientId, holder }];
  });
  return lock.waiters.flatMap((waiter): Wait[] => {
    const clientId = parseOwner(waiter.owner)?.clientId;
    if (clientId === undefined || waiter.goneSinceAtMs !== undefined) return [];
    const blockers = holders.filter((one) => one.clientId !== clientId && excludes(one.holder, waiter, lock));
    return blockers.length === 0 ? [] : [{ clientId, lock, waiter, blockers }];
  });
}

function excludes(holder: EntryHolder, waiter: EntryWaiter, { kind }: LockEntry): boolean {
  return kind !== "read-write-lock" || holder.mode === "exclusive" || waiter.mode === "exclusive";
}

/** Removes the waits that will end by themselves. Repeats, because the end of one wait may let others end. */
function stuckAmong(all: readonly Wait[]): readonly Wait[] {
  let waits = all;
  for (;;) {
    const byClient = grouped(waits);
    const stuck = waits.filter((wait) => isStuck(wait, byClient));
    if (stuck.length === waits.length) return waits;
    waits = stuck;
  }
}

function isStuck({ lock, waiter, blockers }: Wait, byClient: ByClient): boolean {
  const stuck = blockers.filter((one) => nextOf(one, lock, byClient).length > 0);
  if (lock.kind !== "semaphore") return stuck.length > 0;
  // Clients that are not stuck will release their permits. The wait is stuck if these and the free permits are too few.
  const kept = stuck.reduce((sum, { holder }) => sum + holder.permits, 0);
  return (lock.permits?.limit ?? 0) - kept < waiter.permits;
}

/** Returns the waits that might keep a client from releasing a hold: its later waits for other locks. */
function nextOf({ clientId, holder }: Blocker, held: LockEntry, byClient: ByClient): readonly Wait[] {
  const { sinceAtMs } = holder;
  return (byClient.get(clientId) ?? []).filter(({ lock, waiter }) => {
    // Ignore waits for the same lock, because they are contention within a client.
    if (idOf(held) === idOf(lock)) return false;
    return sinceAtMs === undefined || waiter.sinceAtMs === undefined || sinceAtMs <= waiter.sinceAtMs;
  });
}

/** Returns a shortest cycle that contains the wait. Undefined if there is none. */
function shortestFrom(start: Wait, byClient: ByClient): readonly Step[] | undefined {
  const reachedBy = new Map<Wait, { readonly step: Step; readonly before: Wait }>();
  const queue = [start];
  for (const wait of queue) {
    for (const blocker of wait.blockers) {
      for (const next of nextOf(blocker, wait.lock, byClient)) {
        if (reachedBy.has(next)) continue;
        reachedBy.set(next, { step: { holder: blocker.holder, held: wait.lock, wait: next }, before: wait });
        if (next === start) return pathTo(start, reachedBy);
        queue.push(next);
      }
    }
  }
  return undefined;
}

function pathTo(
  start: Wait,
  reachedBy: ReadonlyMap<Wait, { readonly step: Step; readonly before: Wait }>,
): readonly Step[] {
  const steps: Step[] = [];
  let at = reachedBy.get(start);
  while (at !== undefined) {
    steps.unshift(at.step);
    at = at.before === start ? undefined : reachedBy.get(at.before);
  }
  return steps;
}

function deadlockOf(cycle: readonly Step[]): Deadlock {
  const members = cycle.map(({ holder, held, wait }): DeadlockMember => {
    const { host, pid, clientName, owner, token, label, sinceAtMs, leaseLeftMs } = holder;
    const { clientId, lock, waiter } = wait;
    return {
      clientId,
      host,
      pid,
      clientName,
      holds: { ...whichOf(held), owner, token, label, sinceAtMs, leaseLeftMs },
      waits: { ...whichOf(lock), owner: waiter.owner, label: waiter.label, sinceAtMs: waiter.sinceAtMs },
    };
  });
  const begins = members.map(({ holds }) => holds.sinceAtMs ?? 0);
  const youngest = begins.indexOf(Math.max(...begins));
  const waits = members.flatMap(({ waits: { sinceAtMs } }) => sinceAtMs ?? []);
  return {
    members: [...members.slice(youngest), ...members.slice(0, youngest)],
    sinceAtMs: waits.length === 0 ? undefined : Math.max(...waits),
  };
}

function whichOf({
  kind,
  name,
  key,
  needsTopology,
  server,
}: LockEntry): Pick<DeadlockClaim, "kind" | "name" | "key" | "needsTopology" | "server"> {
  return {
    ...{ kind, name, key },
    ...(needsTopology === undefined ? {} : { needsTopology }),
    ...(server === undefined ? {} : { server }),
  };
}
