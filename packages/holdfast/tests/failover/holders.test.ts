/** The effect of a failover that loses unreplicated writes on holders and callers. */

import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../src/index.js";
import { LONG_MS, sleep, until } from "../../src/testing/delays.js";
import { ioredis, nodeRedis, outcomeOf } from "../faults/scene.js";
import { useFailoverScene } from "./failover-scene.js";
import { sharesScripts } from "./shared-scripts.js";

const LEASE_MS = 3_000;
const leaseMs = LEASE_MS;

describe("a failover that loses unreplicated writes", () => {
  const scene = useFailoverScene();

  test("leaves a lock with its new holder although the replica shows the previous one", async () => {
    const { name, replica } = scene;
    const lock = `hf:mutex:{${name}}`;
    const [first, second, third] = [
      await scene.client(ioredis),
      await scene.client(ioredis),
      await scene.client(nodeRedis),
    ];
    const before = await first.mutex(name).acquire({ leaseMs });
    const waiting = second.mutex(name).acquire({ leaseMs, waitMs: LONG_MS });
    await until(async () => (await scene.master.command("ZCARD", `${lock}:queue`)) === 1, "the second to wait");
    await scene.cutReplication();
    await before.release();
    const held = await waiting;
    expect(await replica.command("GET", lock)).toBe(before.owner);
    await scene.failOver();

    const late = outcomeOf(third.mutex(name).acquire({ leaseMs, waitMs: LONG_MS }));
    await until(async () => (await replica.command("GET", lock)) === held.owner, "the holder to put it back");
    expect(await replica.command("ZSCORE", `${lock}:queue`, held.owner), "and it waits no more").toBeNull();
    await sleep(1.2 * LEASE_MS);
    expect(held.validForMs()).toBeGreaterThan(0);
    expect(await replica.command("GET", lock)).toBe(held.owner);
    await held.release();
    const { value: next } = await late;
    expect(next?.token).toBeGreaterThan(held.token);
    expect(await next?.release()).toBe("released");
  });

  test("leaves permits and a write lock with their holders", async () => {
    const { name, replica } = scene;
    const [first, second, third] = [
      await scene.client(ioredis),
      await scene.client(nodeRedis),
      await scene.client(ioredis),
    ];
    const semaphore = (holdfast: typeof first) => holdfast.semaphore(name, { permits: 3 });
    const gone = await semaphore(first).acquire({ leaseMs });
    expect(gone.slots).toEqual([0]);
    await scene.cutReplication();
    await gone.release();
    const two = await semaphore(second).acquire({ permits: 2, leaseMs });
    expect(two.slots).toEqual([0, 1]);
    const writer = await second.readWriteLock(name).write.acquire({ leaseMs });
    await scene.failOver();

    const third1 = outcomeOf(semaphore(third).acquire({ leaseMs, waitMs: LONG_MS }));
    const reader = outcomeOf(third.readWriteLock(name).read.acquire({ leaseMs, waitMs: LONG_MS }));
    await until(
      async () => (await replica.command("HEXISTS", `hf:semaphore:{${name}}`, two.owner)) === 1,
      "permits back",
    );
    const { value: one } = await third1;
    expect(one?.slots, "the number that nobody has").toEqual([2]);
    expect(await semaphore(third).tryAcquire()).toBeNull();
    expect(two.validForMs()).toBeGreaterThan(0);
    expect(writer.validForMs()).toBeGreaterThan(0);
    expect(await third.readWriteLock(name).read.tryAcquire(), "beside a writer nobody reads").toBeNull();
    expect(await writer.release()).toBe("released");
    const { value: read } = await reader;
    expect(read?.token).toBeGreaterThan(writer.token);
    expect([await two.release(), await one?.release(), await read?.release()]).toEqual(Array(3).fill("released"));
  });

  test("keeps leases whose holders signal or proclaim before any renewal", async () => {
    const { name, replica } = scene;
    const holdfast = await scene.client(ioredis);
    await scene.cutReplication();
    const unrenewed = { leaseMs: LONG_MS, renew: false };
    const lease = await holdfast.mutex(name).acquire(unrenewed);
    const leadership = await holdfast.election(name).campaign("first", unrenewed);
    await scene.failOver();
    expect(await holdfast.mutex(name).condition("changed").signal(lease)).toBe(0);
    await leadership.proclaim("second");
    expect(await replica.command("GET", `hf:mutex:{${name}}`)).toBe(lease.owner);
    expect(await replica.command("GET", `hf:election:{${name}}`)).toBe(leadership.owner);
    expect((await holdfast.election(name).leader())?.value).toBe("second");
    expect([await lease.release(), await leadership.release()]).toEqual(["released", "released"]);
  });

  test("grants nothing before the quiet time is over, even if an unrenewed lease is released", async () => {
    const { name, replica } = scene;
    const [first, second] = [await scene.client(ioredis), await scene.client(ioredis)];
    await first.mutex(`warm:${name}`).run(() => {}, { leaseMs });
    await scene.cutReplication();
    const lease = await first.mutex(name).acquire({ leaseMs, renew: false });
    await scene.failOver();
    const waiting = outcomeOf(second.mutex(name).acquire({ leaseMs, waitMs: LONG_MS }));
    await until(
      async () => (await replica.command("HEXISTS", "hf:lineage", "sinceMs")) === 1,
      "the server to be asked",
    );
    const sinceMs = Number(await replica.command("HGET", "hf:lineage", "sinceMs"));
    expect(await lease.release()).toBe("released");
    const { value: next } = await waiting;
    expect((next?.token ?? 0) / 1_000, "a token is the time of its grant").toBeGreaterThanOrEqual(sinceMs + LEASE_MS);
    expect(await next?.release()).toBe("released");
  });
});

describe("on a server without a failover", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  test("a flushed script cache causes no quiet time", async () => {
    const redis = new Redis({ port: server.port });
    const holdfast = createHoldfast({ redis });
    await holdfast.mutex("flushed").run(() => {});
    await server.command("SCRIPT", "FLUSH");
    const lease = await holdfast.mutex("flushed").tryAcquire();
    expect(lease).not.toBeNull();
    expect(await lease?.release()).toBe("released");
    expect(await server.command("HEXISTS", "hf:lineage", "pending")).toBe(0);
    await holdfast.close();
    redis.disconnect();
  });

  test("an acquire and its release send the same commands with and without grace", async () => {
    const costs: Record<string, number>[] = [];
    for (const failoverGrace of ["auto", "off"] as const) {
      const redis = new Redis({ port: server.port });
      const holdfast = createHoldfast({ redis, failoverGrace });
      // The first use checks the server, writes the client record and loads the scripts.
      const clients = async (): Promise<number> => ((await server.command("KEYS", "hf:client:*")) as string[]).length;
      const before = await clients();
      await holdfast.mutex("cost").run(() => until(async () => (await clients()) > before, "the client's record"));
      await server.command("CONFIG", "RESETSTAT");
      for (let i = 0; i < 100; i += 1) await holdfast.mutex("cost").run(() => {});
      // Occasional commands, such as server checks, are not part of a turn.
      const turns = Object.entries(await server.commandStats()).map(
        ([command, calls]) => [command, Math.floor(calls / 100)] as const,
      );
      costs.push(Object.fromEntries(turns.filter(([, each]) => each > 0)));
      await holdfast.close();
      redis.disconnect();
    }
    // If replicas also get the scripts, each script reads the run of the server with two INFO commands.
    expect(costs[0]).toEqual({ ...costs[1], ...((await sharesScripts(server)) && { info: 4 }) });
    expect(costs[0]?.evalsha).toBe(2);
  });
});
