/**
 * Checks that every lock still works after the last fault, when all sessions have ended (L2, L3).
 *
 * The sessions of a run wait for less time than the polling interval and then move on, so a permanently stuck lock
 * would look like a busy one. Here each lock is acquired alone and completely: all permits of a semaphore, so that
 * none was lost to a fault, and the write lock of a read-write lock.
 */
import type { HistoryRecord } from "../history/records.js";
import type { Letter } from "./cell.js";
import { EPS_MS, PATIENCE_MS, POLL_MS } from "./judging/grounds.js";
import type { OpenStage } from "./parts.js";
import { LIMIT, PARTIES } from "./programs/messages.js";
import { isTimely, namesOf } from "./quiesce.js";
import { signal } from "./signalling.js";
import type { Client, Stage } from "./stage.js";
import type { Breach } from "./verdict.js";

/** Findings and the number of decided cases, by property. */
export interface Calm {
  readonly breaches: readonly Breach[];
  readonly checked: Readonly<Record<string, number>>;
}

/** Options to acquire the whole lock, for every kind. */
const WHOLE = { permits: LIMIT, mode: "write" } as const;
/** Options to acquire the smallest part, next to which other holders may have room. */
const LEAST = { permits: 1, mode: "read" } as const;
/** Options that leave room for the smallest part, but not for the whole. */
const MOST = { permits: LIMIT - 1, mode: "read" } as const;
/** Long enough that no lease ends before it is released. */
const LEASE_MS = 4 * PATIENCE_MS;
const WAITERS_EACH = 2;
const CLIENTS = 4;
/** Clients do not poll earlier, so a client that is served before this time was notified. */
const UNTOLD_MS = 0.8 * POLL_MS;
const PAUSE_MS = 20;
/** The largest count that a session sets on a latch. */
const LATCH_COUNT = 3;

/** Runs the checks. Call it when all sessions have ended and, if the server's clock is correct, all leases. */
export async function lookInCalm(open: OpenStage): Promise<Calm> {
  const { stage } = open;
  const clients = stage.clients.filter(({ pid }) => pid > 0).slice(0, CLIENTS);
  const breaches: Breach[] = [];
  const checked: Record<"L2" | "L3" | "X3", number> = { L2: 0, L3: 0, X3: 0 };
  const decide = (property: keyof typeof checked, lockName: string, message: string | undefined): void => {
    checked[property] += 1;
    if (message !== undefined) breaches.push({ property, lockName, message });
  };
  const names = stillDue(stage, open.records());
  await Promise.all(
    clients.map(async (client) => {
      for (let name = names.shift(); name !== undefined; name = names.shift())
        decide("L2", name, await serves(stage, client, name));
    }),
  );
  const [first, ...others] = clients;
  if (first === undefined || others.length === 0) return { breaches, checked };
  const { letter } = stage.cell;
  for (const [property, tries] of TRIED[letter] ?? [WAKES_NEXT]) {
    const lockName = stage.newName();
    const message = await tries(stage, first, others, lockName);
    if (message !== null) decide(property, lockName, message);
  }
  return { breaches, checked };
}

/** Names of locks that must be free: if leases do not end in time, those without an owner in the last key scan. */
function stillDue(stage: Stage, records: readonly HistoryRecord[]): string[] {
  const owned = new Map<string, boolean>();
  for (const record of records) if (record.type === "key-scan") owned.set(record.lockName, record.owners.length > 0);
  return namesOf(records).filter((name) => isTimely(stage.cell) || owned.get(name) === false);
}

/** A single caller acquires the whole lock and releases it. @returns what is wrong */
async function serves(stage: Stage, client: Client, lockName: string): Promise<string | undefined> {
  const withinMs = PATIENCE_MS + EPS_MS;
  const endMs = stage.nowMs() + withinMs;
  let why = "";
  // Retries if there was no reply, because the check is whether the lock works, not whether it works immediately.
  for (let leftMs = withinMs; leftMs > 0; leftMs = endMs - stage.nowMs()) {
    if (stage.cell.letter === "l") {
      if (await opensAlone(client, lockName, leftMs)) return undefined;
      why = "its count reached zero, but no waiter was notified";
    } else if (stage.cell.letter === "b") {
      if (await goesOnAlone(client, lockName, leftMs)) return undefined;
      why = "it was reset, and all its parties arrived";
    } else {
      const taken = await client.take({ ...WHOLE, lockName, leaseMs: stage.leaseMs, waitMs: leftMs });
      if (taken !== undefined) {
        await client.release(taken.leaseId);
        return undefined;
      }
      why = client.lastRefusal ?? "";
    }
    await stage.sleep(PAUSE_MS);
  }
  return `"${lockName}" was not granted to ${client.name} within ${withinMs} ms, although nobody else wanted it: ${why}`;
}

async function opensAlone(client: Client, lockName: string, waitMs: number): Promise<boolean> {
  for (let count = 0; count < LATCH_COUNT; count += 1) await client.latch(lockName, "count-down", 1);
  return (await client.latch(lockName, "await", waitMs)) === "ok";
}

async function goesOnAlone(client: Client, lockName: string, waitMs: number): Promise<boolean> {
  await client.barrier(lockName, "reset", 0);
  const parties = Array.from({ length: PARTIES }, () => client.barrier(lockName, "arrive", waitMs));
  return (await Promise.all(parties)).every((outcome) => outcome === "ok");
}

/** @returns what is wrong; null if the machine was too slow to tell */
type Try = (
  stage: Stage,
  first: Client,
  others: readonly Client[],
  lockName: string,
) => Promise<string | undefined | null>;

/** The whole lock is released, and the waiters are served one after another, or together. */
const wakesNext: Try = async (stage, first, others, lockName) => {
  const held = await first.take({ ...WHOLE, lockName, leaseMs: LEASE_MS, waitMs: PATIENCE_MS });
  if (held === undefined) return `"${lockName}" is new, but was not granted to ${first.name}: ${first.lastRefusal}`;
  const askedMs = stage.nowMs();
  const waiters = others.flatMap((client) => Array<Client>(WAITERS_EACH).fill(client));
  const served = waiters.map((client) => wait(stage, client, lockName));
  const isQueued = await stands(stage, `${stage.keyPrefix(lockName)}:queue`, waiters.length, askedMs + POLL_MS / 2);
  await first.release(held.leaseId);
  return told(lockName, await Promise.all(served), askedMs, isQueued);
};

/** The first waiter wants the whole lock and leaves; the next waiter, for which there is room, is then granted. */
const passesOn: Try = async (stage, first, others, lockName) => {
  const held = await first.take({ ...MOST, lockName, leaseMs: LEASE_MS, waitMs: PATIENCE_MS });
  if (held === undefined) return `"${lockName}" is new, but was not granted to ${first.name}: ${first.lastRefusal}`;
  const askedMs = stage.nowMs();
  const untilMs = askedMs + POLL_MS / 2;
  const queue = `${stage.keyPrefix(lockName)}:queue`;
  const [head = first] = others;
  const leaving = head.take({ ...WHOLE, lockName, leaseMs: LEASE_MS, waitMs: PATIENCE_MS, abortMs: POLL_MS / 4 });
  const isHead = await stands(stage, queue, 1, untilMs);
  const served = wait(stage, first, lockName);
  const isQueued = isHead && (await stands(stage, queue, 2, untilMs));
  const crossed = await leaving;
  if (crossed !== undefined) await head.release(crossed.leaseId);
  const message = told(lockName, [await served], askedMs, isQueued);
  await first.release(held.leaseId);
  return message;
};

/** A waiter for which there is no room is not overtaken by the last waiter, for which there is room. */
const keepsOrder: Try = async (stage, first, others, lockName) => {
  const held = await first.take({ ...WHOLE, lockName, leaseMs: LEASE_MS, waitMs: PATIENCE_MS });
  if (held === undefined) return `"${lockName}" is new, but was not granted to ${first.name}: ${first.lastRefusal}`;
  const [other = first] = others;
  const untilMs = stage.nowMs() + POLL_MS / 2;
  const tokens: Promise<number | null>[] = [];
  let isQueued = true;
  for (const wanted of [LEAST, LEAST, WHOLE, LEAST]) {
    const taken = other.take({ ...wanted, lockName, leaseMs: LEASE_MS, waitMs: 2 * PATIENCE_MS });
    tokens.push(
      taken.then(async (lease) => {
        if (lease !== undefined) await other.release(lease.leaseId);
        return lease?.token ?? null;
      }),
    );
    isQueued &&= await stands(stage, `${stage.keyPrefix(lockName)}:queue`, tokens.length, untilMs);
  }
  await first.release(held.leaseId);
  const [, , third = null, last = null] = await Promise.all(tokens);
  if (!isQueued || third === null || last === null) return null;
  return last < third ? `the fourth waiter of "${lockName}" was granted before the third` : undefined;
};

/** The count reaches zero, and all waiters are notified. */
const opens: Try = async (stage, first, others, lockName) => {
  await first.latch(lockName, "set-count", 1);
  const askedMs = stage.nowMs();
  const waiters = others.flatMap((client) => Array<Client>(WAITERS_EACH).fill(client));
  const served = waiters.map(async (client) => {
    const outcome = await client.latch(lockName, "await", 2 * PATIENCE_MS);
    return { client, isServed: outcome === "ok", atMs: stage.nowMs() };
  });
  const isQueued = await stands(stage, `${stage.keyPrefix(lockName)}:waiters`, waiters.length, askedMs + POLL_MS / 2);
  await first.latch(lockName, "count-down", 1);
  return told(lockName, await Promise.all(served), askedMs, isQueued);
};

/** The last party arrives, and all parties continue. */
const goesOn: Try = async (stage, first, others, lockName) => {
  const [other = first] = others;
  const askedMs = stage.nowMs();
  const arrives = async (client: Client): Promise<Served> => {
    const outcome = await client.barrier(lockName, "arrive", 2 * PATIENCE_MS);
    return { client, isServed: outcome === "ok", atMs: stage.nowMs() };
  };
  const waits = arrives(other);
  const isThere = await stands(stage, `${stage.keyPrefix(lockName)}:arrived`, 1, askedMs + POLL_MS / 2);
  return told(lockName, await Promise.all([waits, arrives(first)]), askedMs, isThere);
};

type Tried = readonly [property: "L3" | "X3", tries: Try];
const WAKES_NEXT: Tried = ["L3", wakesNext];
const OF_SEVERAL: readonly Tried[] = [WAKES_NEXT, ["L3", passesOn], ["X3", keepsOrder]];
const TRIED: Partial<Record<Letter, readonly Tried[]>> = {
  l: [["L3", opens]],
  b: [["L3", goesOn]],
  c: [WAKES_NEXT, ["L3", signal]],
  s: OF_SEVERAL,
  w: OF_SEVERAL,
};

interface Served {
  readonly client: Client;
  readonly isServed: boolean;
  readonly atMs: number;
}

async function wait(stage: Stage, client: Client, lockName: string): Promise<Served> {
  const taken = await client.take({ ...LEAST, lockName, leaseMs: LEASE_MS, waitMs: 2 * PATIENCE_MS });
  const atMs = stage.nowMs();
  if (taken !== undefined) await client.release(taken.leaseId);
  return { client, isServed: taken !== undefined, atMs };
}

/** @returns what is wrong; null if some waiters were queued only after the first one had polled a second time */
function told(
  lockName: string,
  served: readonly Served[],
  askedMs: number,
  isQueued: boolean,
): string | undefined | null {
  const never = served.find(({ isServed }) => !isServed);
  if (never !== undefined)
    return `"${lockName}" had room for ${served.length} waiters, but ${never.client.name} was not let in: ${never.client.lastRefusal ?? "no reason"}`;
  if (!isQueued) return null;
  const late = served.find(({ atMs }) => atMs > askedMs + UNTOLD_MS);
  return late === undefined
    ? undefined
    : `"${lockName}" had room for ${late.client.name}, which was not notified: it was granted ${(late.atMs - askedMs).toFixed(0)} ms after its call`;
}

/** Whether that many waiters are in the queue before that time. */
async function stands(stage: Stage, key: string, count: number, untilMs: number): Promise<boolean> {
  const { servers, quorum, replicas } = stage.topology;
  // Independent servers have no queue, so it is unknown whether a client waits.
  if (quorum !== undefined) return false;
  const server = replicas === undefined ? servers[0] : await replicas.master();
  while (stage.nowMs() < untilMs) {
    if (Number(await server?.command("ZCARD", key)) >= count) return true;
    await stage.sleep(PAUSE_MS);
  }
  return false;
}
