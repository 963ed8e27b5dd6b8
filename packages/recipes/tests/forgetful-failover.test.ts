/** Fenced writes and counters when a replica is promoted that has not received the last writes. */
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { useFailoverScene } from "../../holdfast/tests/failover/failover-scene.js";
import { ioredis, nodeRedis } from "../../holdfast/tests/faults/scene.js";
import { counter, fencedSet, StaleTokenError } from "../src/index.js";

const scene = useFailoverScene();

describe.each([ioredis, nodeRedis])("$name", { timeout: 60_000 }, (library) => {
  let values: RedisServer;
  let redis: Redis;
  beforeEach(async () => {
    values = await startRedis();
    redis = new Redis({ port: values.port });
  });
  afterEach(async () => {
    redis.disconnect();
    await values.stop();
  });

  test("if the fence key is lost, two clients hold the lock, but only the second can write", async () => {
    const [first, second] = await Promise.all([
      scene.client(library, { failoverGrace: "off" }),
      scene.client(library, { failoverGrace: "off" }),
    ]);
    await scene.cutReplication();
    const before = await first.mutex(scene.name).acquire({ leaseMs: 60_000, renew: false });
    await fencedSet(redis, { key: "value", value: "before", lease: before });
    await scene.failOver();
    expect(await scene.replica.command("EXISTS", `hf:mutex:{${scene.name}}:fence`)).toBe(0);
    const after = await second.mutex(scene.name).acquire({ waitMs: 30_000 });
    // Both leases are valid by every clock that their holders can read.
    before.assertHeld();
    after.assertHeld();
    await fencedSet(redis, { key: "value", value: "after", lease: after });
    await expect(fencedSet(redis, { key: "value", value: "late", lease: before })).rejects.toThrow(StaleTokenError);
    expect(await redis.get("value")).toBe("after");
  });

  test("a value on the server that fails over is lost together with its mark", async () => {
    const holdfast = await scene.client(library);
    const write = (token: number, value: string): Promise<void> =>
      fencedSet(holdfast, { key: "value", value, lease: { name: scene.name, token } });
    await write(1, "kept");
    await scene.cutReplication();
    await write(2, "forgotten");
    await scene.failOver();
    await write(1, "by the one before");
    await write(2, "once more");
    await expect(write(1, "late")).rejects.toThrow(StaleTokenError);
    expect(await scene.replica.command("GET", "value")).toBe("once more");
  });

  test("a lost take is lost with its request id, so a retry counts once", async () => {
    const stock = counter(await scene.client(library), scene.name);
    await stock.put(10, { requestId: "delivery" });
    expect(await stock.take(1, { requestId: "kept" })).toBe(9);
    await scene.cutReplication();
    expect(await stock.take(1, { requestId: "forgotten" })).toBe(8);
    await scene.failOver();
    expect(await stock.take(1, { requestId: "forgotten" })).toBe(8);
    expect(await stock.take(1, { requestId: "kept" })).toBe(9);
    expect(await stock.read()).toBe(8);
  });
});
