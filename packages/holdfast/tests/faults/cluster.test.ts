/** A cluster whose slots move and whose masters change while locks are held and waited for. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import type { Mutex } from "../../src/index.js";
import { clusterSlot } from "../../src/stores/cluster-slot.js";
import { LONG_MS, SOON_MS, sleep, until } from "../../src/testing/delays.js";
import { replicated } from "./replicated.js";
import { clusters, olderClusters, startWorkers, useClients } from "./topology-scene.js";

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
}, 150_000);
afterAll(() => cluster.stop());

const scene = useClients();

/** Maximum time that a lock may be free while a client wants it and its slot does not move. */
const IDLE_MS = SOON_MS / 2;
/** GLIDE sends a request again 1.28 s after a server refused it because its slot was moving. */
const GLIDE_IDLE_MS = IDLE_MS + 1_300;

test.each(clusters)("locks of a cluster are refused if any one master may evict: $name", async (library) => {
  for (const master of await cluster.masters()) {
    await master.command("CONFIG", "SET", "maxmemory", "100mb");
    await master.command("CONFIG", "SET", "maxmemory-policy", "volatile-lru");
    // On a busy machine a master may be slow to reply, and is skipped after part of this timeout.
    const holdfast = await scene.client(library, cluster.ports, { commandTimeoutMs: LONG_MS });
    const refused = { code: "ERR_LOCK_EVICTION", policy: "volatile-lru" };
    for (const shard of ["a", "b", "c"]) {
      await expect(holdfast.mutex(`${scene.name}:${shard}`).acquire(), shard).rejects.toMatchObject(refused);
    }
    await master.command("CONFIG", "SET", "maxmemory", "0");
    await master.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
    await holdfast.mutex(scene.name).run(() => {});
  }
});

test.each(clusters)(
  "a holder whose lease is force-released right after its grant is notified: $name",
  async (library) => {
    const { name } = scene;
    const other = await scene.client(library, cluster.ports);
    await other.mutex(name).run(() => {});
    const holders = await Promise.all([1, 2, 3, 4, 5].map(() => scene.client(library, cluster.ports)));
    for (const holder of holders) {
      // It is this client's first acquire, so it is not subscribed yet, and its first renewal is far off.
      const lease = await holder.mutex(name).acquire({ leaseMs: 10 * LONG_MS });
      expect(await other.mutex(name).forceRelease({ token: lease.token })).toBe(true);
      await until(() => lease.signal.aborted, "the holder to be told");
    }
  },
);

/** The older clients run all tests in the nightly run. */
const thorough = process.env.HOLDFAST_TESTS === "all" ? [...clusters, ...olderClusters] : clusters;

describe.each(olderClusters)("$name", (library) => {
  test("a waiter is notified of its grant, before and after a failover", async () => {
    const { name } = scene;
    const [first, second] = [await scene.client(library, cluster.ports), await scene.client(library, cluster.ports)];
    for (let turn = 0; turn < 2; turn += 1) {
      const lease = await first.mutex(name).acquire({ leaseMs: 2 * LONG_MS, waitMs: LONG_MS });
      const waiting = second.mutex(name).acquire({ waitMs: LONG_MS });
      // The library may send a request to the former master of the slot, and then rejects.
      const countOfWaiters = (): Promise<number | undefined> =>
        first
          .mutex(name)
          .inspect()
          .then(
            ({ waiterCount }) => waiterCount,
            () => undefined,
          );
      await until(async () => (await countOfWaiters()) === 1, "a waiter");
      if (turn === 0) {
        await cluster.failover(clusterSlot(`{${name}}`));
        await cluster.settled();
        const canAsk = (mutex: Mutex): Promise<boolean> =>
          mutex.inspect().then(
            () => true,
            () => false,
          );
        for (const holdfast of [first, second]) await until(() => canAsk(holdfast.mutex(name)), "the way there");
      }
      const releasedAtMs = performance.now();
      expect(await lease.release()).toBe("released");
      const next = await waiting;
      // Otherwise it found the grant with a re-check, which it sends every 5 s anyway.
      expect(performance.now() - releasedAtMs).toBeLessThan(2 * SOON_MS);
      expect(await next.release()).toBe("released");
    }
  }, 150_000);
});

describe.each(thorough)("$name", (library) => {
  test("while a slot moves, its locks never overlap, and waiters are granted in time", async () => {
    const tag = scene.name;
    // Three locks of one slot. Names with a brace share the tag before it.
    const names = [tag, `${tag}}a`, `${tag}}b`];
    const slot = clusterSlot(`{${tag}}`);
    const holdfasts = [await scene.client(library, cluster.ports), await scene.client(library, cluster.ports)];
    const workers = startWorkers([...holdfasts, ...holdfasts], names);
    await sleep(200);
    const home = await cluster.masterOf(slot);
    const masters = (await cluster.masters()).filter(({ id }) => id !== home.id);
    for (const to of [...masters, home]) {
      await workers.withoutClock(() => cluster.moveSlot(slot, to, () => sleep(10)));
      await sleep(IDLE_MS / 2);
    }
    const seen = await workers.stop();
    expect(seen.errors).toEqual([]);
    expect(seen.overlaps).toBe(0);
    for (const name of names) {
      const tokens = seen.tokens[name] ?? [];
      expect(tokens.length).toBeGreaterThan(0);
      expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    }
    expect(seen.longestIdleMs).toBeLessThan(library.name === "GLIDE" ? GLIDE_IDLE_MS : IDLE_MS);
  }, 150_000);

  test.each(["hands over to its replica", "is killed"])(
    "if the master %s, the lock stays with its holder, and waiters are granted afterwards",
    async (how) => {
      const { name } = scene;
      const slot = clusterSlot(`{${name}}`);
      const clients = await Promise.all([1, 2, 3].map(() => scene.client(library, cluster.ports)));
      const [first, second, third] = clients.map((client) => client.mutex(name)) as [Mutex, Mutex, Mutex];
      const lease = await first.acquire({ leaseMs: 2 * LONG_MS });
      const tokens = [lease.token];
      let inside = 1;
      const wait = async (mutex: Mutex): Promise<void> => {
        const next = await mutex.acquire({ waitMs: 2 * LONG_MS, leaseMs: LONG_MS });
        inside += 1;
        expect(inside).toBe(1);
        tokens.push(next.token);
        inside -= 1;
        expect(await next.release()).toBe("released");
      };
      const waiting = [wait(second)];
      await until(async () => (await first.inspect()).waiterCount === 1, "a waiter");

      const old = await cluster.masterOf(slot);
      const mend = async (): Promise<void> => {
        if (how === "is killed") await old.restart();
        await cluster.settled();
      };
      onTestFinished(mend);
      // Unreplicated writes would be lost, and this test is not about that.
      await replicated(old);
      if (how === "is killed") await old.kill();
      else await cluster.failover(slot);
      await until(async () => (await cluster.masterOf(slot).catch(() => old)).id !== old.id, "another master");
      if (library.clingsToTheDead === true) await mend();
      await until(
        () =>
          lease.extend(2 * LONG_MS).then(
            () => true,
            () => false,
          ),
        "an extension by the new master",
      );
      waiting.push(wait(third));
      const waiters = async (): Promise<number> =>
        (await first.inspect().catch(() => ({ waiterCount: 0 }))).waiterCount;
      await until(async () => (await waiters()) === 2, "two waiters");
      inside -= 1;
      expect(await lease.release()).toBe("released");
      await Promise.all(waiting);
      expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    },
    150_000,
  );
});
