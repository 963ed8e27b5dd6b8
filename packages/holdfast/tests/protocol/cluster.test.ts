/** Two major versions of the protocol in a cluster. One key holds the mark for the locks of every slot. */
import { randomUUID } from "node:crypto";
import { Cluster } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import { createHoldfast } from "../../src/index.js";

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
}, 60_000);
afterAll(() => cluster?.stop());

test("Holdfast refuses the locks of every slot while a newer protocol is marked", async () => {
  const redis = new Cluster(cluster.ports.map((port) => ({ host: "127.0.0.1", port })));
  const prefix = randomUUID();
  await redis.hset(`${prefix}:protocol`, "2", `${Date.now()} ${Date.now() + 60_000} two 2.0.0`);
  const holdfast = createHoldfast({ redis, prefix, failoverGrace: "off" });
  try {
    for (const name of ["a", "b", "c", "d"]) {
      await expect(holdfast.mutex(name).acquire()).rejects.toMatchObject({
        code: "ERR_LOCK_PROTOCOL",
        otherProtocol: 2,
      });
    }
    await redis.del(`${prefix}:protocol`);
    for (const name of ["a", "b", "c", "d"]) expect(await holdfast.mutex(name).run(() => name)).toBe(name);
    expect(await redis.hkeys(`${prefix}:protocol`)).toEqual(["1"]);
  } finally {
    await holdfast.close();
    redis.disconnect();
  }
});
