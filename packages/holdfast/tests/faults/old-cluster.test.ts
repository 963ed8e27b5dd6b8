/**
 * A cluster whose servers lack sharded channels, as before Redis 7: the commands of a newer server are renamed away. So
 * is PUBSUB, because its subcommands cannot be renamed separately.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import { startRedis } from "../../../../tests/support/redis-server.js";
import { LONG_MS, SOON_MS, until } from "../../src/testing/delays.js";
import { clusters, useClients } from "./topology-scene.js";

let cluster: RedisCluster;
beforeAll(async () => {
  const server = await startRedis();
  const known = (await server.command("COMMAND", "INFO", "SSUBSCRIBE", "SPUBLISH", "PUBSUB")) as unknown[];
  await server.stop();
  const gone = ["SSUBSCRIBE", "SPUBLISH", "PUBSUB"].filter((_, at) => known[at] !== null);
  cluster = await startCluster({ args: gone.flatMap((command) => ["--rename-command", command, ""]) });
}, 150_000);
afterAll(() => cluster.stop());

const scene = useClients();

describe.each(clusters)("$name", (library) => {
  test("a waiter is notified of its grant on a plain channel", async () => {
    const { name } = scene;
    const [first, second] = [await scene.client(library, cluster.ports), await scene.client(library, cluster.ports)];
    const lease = await first.mutex(name).acquire({ leaseMs: 2 * LONG_MS });
    const waiting = second.mutex(name).acquire({ waitMs: LONG_MS });
    await until(async () => (await first.mutex(name).inspect()).waiterCount === 1, "a waiter");
    const releasedAtMs = performance.now();
    expect(await lease.release()).toBe("released");
    const next = await waiting;
    expect(performance.now() - releasedAtMs).toBeLessThan(SOON_MS);
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await next.release()).toBe("released");
  });

  test("a permit granted to a waiter that never releases it is granted again when its lease expires", async () => {
    const { name } = scene;
    const clients = [1, 2, 3].map(() => scene.client(library, cluster.ports));
    const [first, second, third] = await Promise.all(clients);
    if (first === undefined || second === undefined || third === undefined) throw new Error("there are three");
    const semaphoreOf = (holdfast: typeof first) => holdfast.semaphore(name, { permits: 1 });
    const lease = await semaphoreOf(first).acquire({ leaseMs: 2 * LONG_MS });
    const lost = semaphoreOf(second).acquire({ waitMs: LONG_MS, leaseMs: SOON_MS, renew: false });
    await until(async () => (await semaphoreOf(first).inspect()).waiterCount === 1, "the first waiter");
    const waiting = semaphoreOf(third).acquire({ waitMs: LONG_MS });
    await until(async () => (await semaphoreOf(first).inspect()).waiterCount === 2, "the second waiter");
    expect(await lease.release()).toBe("released");
    const passed = await lost;
    expect((await semaphoreOf(first).inspect()).waiterCount, "nobody was passed over").toBe(1);
    // Never released, so its lease expires.
    const next = await waiting;
    expect(passed.validForMs()).toBe(0);
    expect(await next.release()).toBe("released");
  });
});
