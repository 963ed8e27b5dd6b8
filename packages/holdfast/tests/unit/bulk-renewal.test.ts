/** Renewals of a process with very many leases: few requests, and each lease reports its own loss. */
import { embedded, Keyspace, loadInterpreter } from "@holdfast/embedded";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { BulkRenewal } from "../../src/core/renewal.js";
import { createHoldfastOn } from "../../src/holdfast.js";
import { type Holdfast, type Lease, StoreError } from "../../src/index.js";
import { ManualRuntime, settle } from "./manual-runtime.js";
import { WatchedStore } from "./watched-store.js";

/** Too many leases to be renewed one by one. */
const MANY = 300;
const LEASE_MS = 30_000;

let runtime: ManualRuntime;
let keyspace: Keyspace;
let store: WatchedStore;
let holdfast: Holdfast;
let startMs: number;

beforeAll(async () => {
  await loadInterpreter();
});
beforeEach(() => {
  runtime = new ManualRuntime();
  startMs = runtime.monotonicMs();
  keyspace = new Keyspace({
    clock: { nowUs: () => Math.round(runtime.wallMs() * 1_000) },
    scheduler: { schedule: (task) => queueMicrotask(task) },
  });
  store = new WatchedStore(keyspace);
  holdfast = createHoldfastOn(runtime, { store, allowEviction: true });
});
afterEach(async () => {
  const closing = holdfast.close();
  await runtime.advance(10_000);
  await closing;
});

async function held(
  count: number,
  options: { leaseMs?: number; maxHoldMs?: number; renew?: boolean } = {},
): Promise<Lease[]> {
  const acquiring = Array.from({ length: count }, (_, i) => holdfast.mutex(`m${i}`).acquire(options));
  await settle();
  const leases = await Promise.all(acquiring);
  store.taken();
  return leases;
}

/** The number of requests per script since the last call. */
function sent(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of store.taken()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

describe("many leases", () => {
  test("are renewed a hundred at a time within a third of the lease, without individual timers", async () => {
    const leases = await held(MANY);
    await runtime.advance(LEASE_MS / 3);
    expect(sent()).toEqual({ "mutex/renew": 3 });
    expect(runtime.running()).toBeLessThan(10);
    for (const lease of leases) expect(lease.validForMs()).toBeGreaterThan(0.9 * LEASE_MS);
    await runtime.advance(5 * LEASE_MS);
    for (const lease of leases) expect(lease.validForMs()).toBeGreaterThan(0.6 * LEASE_MS);
    expect(Object.keys(sent())).toEqual(["mutex/renew"]);
  });

  test("are renewed one by one, each at its own time, if there are only 100", async () => {
    await held(100);
    await runtime.advance(LEASE_MS / 3 - 100);
    expect(sent()).toEqual({});
    await runtime.advance(200);
    expect(sent()).toEqual({ "mutex/extend": 100 });
  });

  test("are renewed one by one if they are short", async () => {
    await held(MANY, { leaseMs: 6_000 });
    await runtime.advance(6_000);
    expect(Object.keys(sent())).toEqual(["mutex/extend"]);
  });

  test("stay held if one of them is deleted, and only that one is lost", async () => {
    const leases = await held(MANY);
    const [lost, ...others] = leases;
    // Without a message, as with an operator's command.
    const source = "return redis.call('DEL', KEYS[1])";
    const del = { name: "del", sha1: source, keys: ["lock"], args: [], replies: [], source };
    expect(await embedded({ keyspace }).run(del, ["hf:mutex:{m0}"], [], 1_000)).toBe(1);
    await runtime.advance(LEASE_MS / 3);
    expect(lost?.signal.aborted).toBe(true);
    expect(lost?.signal.reason).toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "server-lost" });
    for (const lease of others) expect(lease.signal.aborted).toBe(false);
  });

  test("are renewed for the current holder after each lock was released and acquired again", async () => {
    const locks = Array.from({ length: MANY }, (_, i) => holdfast.mutex(`m${i}`));
    const acquireAll = async (): Promise<Lease[]> => {
      const acquiring = locks.map((lock) => lock.acquire());
      await settle();
      return Promise.all(acquiring);
    };
    for (const round of [1, 2]) {
      const leases = await acquireAll();
      for (const renewal of [1, 2]) {
        store.taken();
        await runtime.advance(LEASE_MS / 3);
        expect(sent(), `round ${round}, renewal ${renewal}`).toEqual({ "mutex/renew": 3 });
      }
      await Promise.all(leases.map((lease) => lease.release()));
    }
  });

  test("are not renewed after their release", async () => {
    const leases = await held(MANY);
    await runtime.advance(5_000);
    for (const lease of leases.slice(0, 10)) expect(await lease.release()).toBe("released");
    await runtime.advance(LEASE_MS);
    for (const [i, lease] of leases.entries()) expect(lease.validForMs() > 0).toBe(i >= 10);
    expect(keyspace.keys().filter((key) => /^hf:mutex:\{m\d\}$/.test(key))).toEqual([]);
  });

  test.each(["reply lost", "refused for good"] as const)(
    "are renewed one by one if the bulk request fails: %s",
    async (fate) => {
      const leases = await held(MANY);
      store.fateOf = ({ name }) => (name === "mutex/renew" ? fate : "answered");
      await runtime.advance(LEASE_MS);
      const { "mutex/renew": forMany = 0, "mutex/extend": alone = 0 } = sent();
      // A request that was refused permanently is not sent again.
      if (fate === "refused for good") expect(forMany).toBeLessThanOrEqual(4);
      expect(alone).toBeGreaterThanOrEqual(2 * MANY);
      for (const lease of leases) expect(lease.validForMs()).toBeGreaterThan(0.6 * LEASE_MS);
    },
  );

  test("survive one lost reply, however long the command timeout is", async () => {
    const patient = createHoldfastOn(runtime, { store, allowEviction: true, commandTimeoutMs: 60_000 });
    const acquiring = Array.from({ length: MANY }, (_, i) => patient.mutex(`p${i}`).acquire());
    await settle();
    const leases = await Promise.all(acquiring);
    const run = store.run.bind(store);
    store.run = (script, keys, args, ...[timeoutMs = 0]: number[]) => {
      if (script.name !== "mutex/renew") return run(script, keys, args);
      const cause = new Error("connection lost");
      const error = new StoreError(script.name, { mayHaveRun: true, transient: true, cause });
      return new Promise((_, reject) => runtime.startTimer(() => reject(error), timeoutMs, false));
    };
    await runtime.advance(LEASE_MS / 3);
    store.run = run;
    await runtime.advance(LEASE_MS);
    for (const lease of leases) expect(lease.signal.aborted).toBe(false);
    const closing = patient.close();
    await runtime.advance(1_000);
    await closing;
  });

  test("are all lost in time if the server does not reply", async () => {
    const leases = await held(MANY);
    store.fateOf = () => "reply lost";
    const run = store.run.bind(store);
    store.run = (script, ...rest) => (script.name.startsWith("mutex/") ? new Promise(() => {}) : run(script, ...rest));
    await runtime.advance(LEASE_MS);
    for (const lease of leases) expect(lease.signal.aborted).toBe(true);
    store.run = run;
    store.fateOf = () => "answered";
  });

  test("of different lengths are renewed together, each for its own length", async () => {
    const acquiring = Array.from({ length: MANY }, (_, i) =>
      holdfast.mutex(`m${i}`).acquire({ leaseMs: LEASE_MS + 10 * i }),
    );
    await settle();
    const leases = await Promise.all(acquiring);
    sent();
    await runtime.advance(LEASE_MS / 3 + 1_000);
    // Half of them are due a second later than the others.
    expect(sent()).toEqual({ "mutex/renew": 4 });
    for (const [i, lease] of leases.entries()) {
      expect(lease.validForMs()).toBeGreaterThan(0.9 * LEASE_MS);
      const lengthMs = LEASE_MS + 10 * i;
      const leftMs = keyspace.pttl(`hf:mutex:{m${i}}`);
      expect([lengthMs - 1_000, lengthMs]).toContain(leftMs);
    }
  });

  test("are renewed again a third of the lease after a late reply", async () => {
    const leases = await held(MANY);
    const run = store.run.bind(store);
    store.run = async (script, keys, args) => {
      const reply = await run(script, keys, args);
      if (script.name === "mutex/renew") await new Promise<void>((go) => runtime.startTimer(() => go(), 2_500, false));
      return reply;
    };
    await runtime.advance(2 * (LEASE_MS / 3) + 2 * 2_500 + 1_000);
    for (const lease of leases) expect(lease.validForMs()).toBeGreaterThan(0.8 * LEASE_MS);
    expect(sent()).toEqual({ "mutex/renew": 6 });
    store.run = run;
  });

  test("are lost at most a second after the wall clock was set forward", async () => {
    const leases = await held(MANY);
    await runtime.advance(4_500);
    runtime.stepWall(LEASE_MS);
    await runtime.advance(1_000);
    for (const lease of leases) expect(lease.signal.reason).toMatchObject({ reason: "expired" });
  });

  test("are lost in time if the wall clock is a little too fast", async () => {
    const leases = await held(MANY, { leaseMs: 60_000, renew: false });
    while (leases[0]?.signal.aborted === false) {
      await runtime.advance(1_000);
      runtime.stepWall(90);
    }
    expect(runtime.monotonicMs() - startMs).toBeLessThan(60_000 * 0.99 - 54 * 90 + 1_000);
    for (const lease of leases) expect(lease.signal.reason).toMatchObject({ reason: "expired" });
  });

  test("are checked in time after a holder asked for a shorter lease", async () => {
    const [lease] = await held(MANY, { leaseMs: 60_000 });
    await runtime.advance(3_000);
    await lease?.extend(15_000);
    sent();
    await runtime.advance(6_000);
    // The bulk request shortens no lease, so the lease is then renewed by its own request.
    expect(sent()).toEqual({ "mutex/renew": 1, "mutex/extend": 1 });
  });

  test("are all renewed within a second after the inbox reconnects", async () => {
    await held(MANY);
    await runtime.advance(4_500);
    sent();
    for (const listener of store.listeners) listener("inbox");
    await runtime.advance(1_000);
    expect(sent()).toEqual({ "mutex/renew": 3 });
  });

  test("end exactly at maxHoldMs", async () => {
    const leases = await held(MANY, { maxHoldMs: 65_500 });
    await runtime.advance(65_499);
    for (const lease of leases) expect(lease.signal.aborted).toBe(false);
    await runtime.advance(2);
    for (const lease of leases) expect(lease.signal.aborted).toBe(true);
  });
});

test("a lease that would wait too long behind slow bulk requests is renewed on its own", async () => {
  const bulk = new BulkRenewal(runtime, 10_000);
  const ends = { extended: 0, open: 0 };
  const renewAll = (): Promise<readonly number[]> =>
    new Promise((resolve) => runtime.startTimer(() => resolve([]), 1_300, false));
  const lease = {
    ...{ protocol: { renewAll } as never, grant: {} as never, leaseMs: 15_000, isNeeded: true },
    extended: () => {
      ends.extended += 1;
    },
    open: () => {
      ends.open += 1;
    },
  };
  for (let i = 0; i < 4_096; i += 1) bulk.add(lease, runtime.monotonicMs());
  await runtime.advance(2_600);
  expect(ends).toEqual({ extended: 2 * 512, open: 4_096 - 2 * 512 });
});

test("a short command timeout takes no lease out of the bulk queue", async () => {
  const bulk = new BulkRenewal(runtime, 100);
  let extended = 0;
  const renewAll = (): Promise<readonly number[]> =>
    new Promise((resolve) => runtime.startTimer(() => resolve([]), 30, false));
  const lease = {
    ...{ protocol: { renewAll } as never, grant: {} as never, leaseMs: 60_000, isNeeded: true },
    extended: () => {
      extended += 1;
    },
    open: () => expect.unreachable("all are through in time"),
  };
  for (let i = 0; i < 20_000; i += 1) bulk.add(lease, runtime.monotonicMs());
  await runtime.advance(300);
  expect(extended).toBe(20_000);
});

test("20 000 leases are renewed within nine round trips, even if the server is far away", async () => {
  const roundTripMs = 1_000;
  const bulk = new BulkRenewal(runtime, 10_000);
  let extended = 0;
  const renewAll = (): Promise<readonly number[]> =>
    new Promise((resolve) => runtime.startTimer(() => resolve([]), roundTripMs, false));
  const lease = {
    ...{ protocol: { renewAll } as never, grant: {} as never, leaseMs: 60_000, isNeeded: true },
    extended: () => {
      extended += 1;
    },
    open: () => expect.unreachable("none is refused"),
  };
  const all = 20_000;
  for (let i = 0; i < all; i += 1) bulk.add(lease, runtime.monotonicMs());
  await runtime.advance(9 * roundTripMs);
  expect(extended).toBe(all);
});
