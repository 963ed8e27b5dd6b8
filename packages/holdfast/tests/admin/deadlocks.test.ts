/** Possible deadlocks: which waits form a cycle of clients, and that a cycle must appear in two reads. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { afterEach, expect, test } from "vitest";
import { findDeadlocks, type LockEntry, surveyAll } from "../../src/admin/index.js";
import { createHoldfast, type Holdfast, type Lock } from "../../src/index.js";
import { until } from "../../src/testing/delays.js";

const open: Holdfast[] = [];
let waits: AbortController[] = [];
afterEach(async () => {
  for (const wait of waits) wait.abort();
  waits = [];
  await Promise.all(open.splice(0).map((holdfast) => holdfast.close()));
});

const HELD = { leaseMs: 600_000 } as const;

/** Two clients and a third on one server. */
function three(): [Holdfast, Holdfast, Holdfast] {
  const keyspace = new Keyspace();
  const make = (clientName: string): Holdfast => {
    const holdfast = createHoldfast({ store: embedded({ keyspace }), clientName });
    open.push(holdfast);
    return holdfast;
  };
  return [make("a"), make("b"), make("c")];
}

/** Resolves when the lock has one more waiter. */
async function queueUp(lock: Pick<Lock, "acquire" | "inspect">, options: object = {}): Promise<void> {
  const before = (await lock.inspect()).waiterCount;
  const wait = new AbortController();
  waits.push(wait);
  lock.acquire({ ...HELD, waitMs: Number.POSITIVE_INFINITY, signal: wait.signal, ...options }).catch(() => {});
  await until(async () => (await lock.inspect()).waiterCount > before, "it waits");
}

/** Times are in whole ms, so the order of two events in the same millisecond is unknown. */
async function nextMs(): Promise<void> {
  const now = Date.now();
  await until(() => Date.now() > now + 1, "time passes");
}

/** Three independent servers: a Holdfast on all of them, and `on`, which creates a client of only one of them. */
function apart(): { readonly quorum: Holdfast; readonly on: (server: number, clientName: string) => Holdfast } {
  const keyspaces = [new Keyspace(), new Keyspace(), new Keyspace()] as const;
  const quorum = createHoldfast({ redlock: keyspaces.map((keyspace) => embedded({ keyspace })) });
  open.push(quorum);
  const on = (server: number, clientName: string): Holdfast => {
    const holdfast = createHoldfast({ store: embedded({ keyspace: keyspaces[server] as Keyspace }), clientName });
    open.push(holdfast);
    return holdfast;
  };
  return { quorum, on };
}

const found = async (holdfast: Holdfast, locks?: readonly LockEntry[]): ReturnType<typeof findDeadlocks> =>
  await findDeadlocks(holdfast, { betweenMs: 0, locks });

test("two clients that wait for each other are found, with owners, labels, and what to release", async () => {
  const [a, b, c] = three();
  const first = await a.mutex("orders").acquire({ ...HELD, label: "order 7" });
  await nextMs();
  const second = await b.mutex("stock").acquire({ ...HELD, label: "recount" });
  await queueUp(a.mutex("stock"), { label: "order 7" });
  await nextMs();
  await queueUp(b.mutex("orders"), { label: "recount" });
  await queueUp(c.mutex("orders"));
  const { deadlocks, isComplete, unreachable } = await found(c);
  expect({ isComplete, unreachable }).toEqual({ isComplete: true, unreachable: 0 });
  expect(deadlocks).toMatchObject([
    {
      members: [
        {
          clientName: "b",
          pid: process.pid,
          holds: { name: "stock", kind: "mutex", owner: second.owner, token: second.token, label: "recount" },
          waits: { name: "orders", label: "recount" },
        },
        {
          clientName: "a",
          holds: { name: "orders", owner: first.owner, token: first.token, label: "order 7" },
          waits: { name: "stock", label: "order 7" },
        },
      ],
    },
  ]);
  const [{ members, sinceAtMs } = { members: [], sinceAtMs: 0 }] = deadlocks;
  expect(sinceAtMs).toBe(Math.max(...members.map(({ waits: { sinceAtMs: at = 0 } }) => at)));
  await b.mutex("stock").forceRelease({ token: second.token });
  expect((await found(c)).deadlocks).toEqual([]);
});

test("a cycle of three through a read-write lock and a semaphore without free permits is found", async () => {
  const [a, b, c] = three();
  const pool = (holdfast: Holdfast) => holdfast.semaphore("pool", { permits: 2 });
  await a.readWriteLock("catalog").read.acquire(HELD);
  await b.mutex("m").acquire(HELD);
  await pool(c).acquire({ ...HELD, permits: 2 });
  await queueUp(a.mutex("m"));
  await queueUp(pool(b));
  await queueUp(c.readWriteLock("catalog").write);
  const { deadlocks } = await found(a);
  expect(deadlocks.map(({ members }) => members.map(({ holds }) => holds.name).toSorted())).toEqual([
    ["catalog", "m", "pool"],
  ]);
});

test("a semaphore whose other holders continue is not part of a deadlock", async () => {
  const [a, b, c] = three();
  const pool = (holdfast: Holdfast) => holdfast.semaphore("pool", { permits: 2 });
  await a.mutex("m").acquire(HELD);
  await pool(b).acquire(HELD);
  await pool(c).acquire(HELD);
  await queueUp(b.mutex("m"));
  await queueUp(pool(a));
  expect((await found(a)).deadlocks).toEqual([]);
});

test("contention for one lock, or for two locks by separate tasks, is not a deadlock", async () => {
  const [a, b] = three();
  const pool = (holdfast: Holdfast) => holdfast.semaphore("pool", { permits: 2 });
  for (const one of [a, b]) await pool(one).acquire(HELD);
  for (const one of [a, b]) await queueUp(pool(one));
  await a.mutex("nightly").acquire(HELD);
  // This wait is older than the hold, so the holder is another task.
  await queueUp(b.mutex("nightly"));
  await nextMs();
  await b.mutex("hourly").acquire(HELD);
  await queueUp(a.mutex("hourly"));
  expect((await found(a)).deadlocks).toEqual([]);
});

test("a cycle that has ended by the second read is not reported", async () => {
  const [a, b] = three();
  const lease = await a.mutex("x").acquire(HELD);
  await b.mutex("y").acquire(HELD);
  await queueUp(a.mutex("y"));
  await queueUp(b.mutex("x"));
  const { locks } = await surveyAll(a);
  expect((await found(a, locks)).deadlocks).toHaveLength(1);
  await lease.release();
  expect((await found(a, locks)).deadlocks).toEqual([]);
});

test("a client that is gone is not part of a deadlock, because its lease ends", async () => {
  const [a, b] = three();
  await a.mutex("x").acquire(HELD);
  await b.mutex("y").acquire(HELD);
  await queueUp(a.mutex("y"));
  await queueUp(b.mutex("x"));
  const { locks } = await surveyAll(a);
  const gone = locks.map((lock) => ({
    ...lock,
    holders: lock.holders.map((one) => ({ ...one, ...(one.clientName === "b" && { goneSinceAtMs: 1 }) })),
  }));
  expect((await found(a, gone)).deadlocks).toEqual([]);
});

test("locks of the same name on independent servers are different locks, so waits across them are no deadlock", async () => {
  const { quorum, on } = apart();
  const [a, b, c, d] = [on(0, "a"), on(0, "b"), on(1, "c"), on(1, "d")];
  await a.mutex("orders").acquire(HELD);
  await b.mutex("stock").acquire(HELD);
  await c.mutex("orders").acquire(HELD);
  await d.mutex("stock").acquire(HELD);
  await nextMs();
  // Read as one lock per name, a and d would wait for each other.
  await queueUp(a.mutex("stock"));
  await queueUp(d.mutex("orders"));
  const { locks } = await surveyAll(quorum);
  expect(locks.map(({ name, holders, waiterCount }) => `${name} ${holders.length} ${waiterCount}`).toSorted()).toEqual([
    "orders 2 1",
    "stock 2 1",
  ]);
  expect((await found(quorum)).deadlocks).toEqual([]);
  expect((await found(quorum, locks)).deadlocks).toEqual([]);
});

test("a deadlock on one of several independent servers names that server", async () => {
  const { quorum, on } = apart();
  const [a, b, other] = [on(1, "a"), on(1, "b"), on(2, "other")];
  await a.mutex("orders").acquire(HELD);
  await nextMs();
  await b.mutex("stock").acquire(HELD);
  await other.mutex("stock").acquire(HELD);
  await nextMs();
  await queueUp(a.mutex("stock"));
  await nextMs();
  await queueUp(b.mutex("orders"));
  const { deadlocks } = await found(quorum);
  const claim = { needsTopology: "single-server", server: { index: 1 } };
  expect(deadlocks).toMatchObject([
    {
      members: [
        { clientName: "b", holds: { name: "stock", ...claim }, waits: { name: "orders", ...claim } },
        { clientName: "a", holds: { name: "orders", ...claim }, waits: { name: "stock", ...claim } },
      ],
    },
  ]);
});

test("a semaphore on an independent server is judged by its own permits, not by those of another server", async () => {
  const { quorum, on } = apart();
  const [a, b, c, d] = [on(1, "a"), on(1, "b"), on(1, "c"), on(0, "d")];
  await a.mutex("orders").acquire(HELD);
  await b.semaphore("uploads", { permits: 2 }).acquire(HELD);
  await c.semaphore("uploads", { permits: 2 }).acquire(HELD);
  // With the capacity of this semaphore, a's wait below would be stuck.
  await d.semaphore("uploads", { permits: 1 }).acquire(HELD);
  await nextMs();
  await queueUp(a.semaphore("uploads", { permits: 2 }));
  await queueUp(b.mutex("orders"));
  expect((await found(quorum)).deadlocks).toEqual([]);
});
