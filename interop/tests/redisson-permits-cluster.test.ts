/**
 * Redisson's semaphores and latch between two Holdfast processes on a cluster, with each way to publish.
 * redisson-topologies tests Java.
 */
import { randomUUID } from "node:crypto";
import { type Publish, type Redisson, redisson } from "@holdfast/interop/redisson";
import { createHoldfast, type Holdfast } from "holdfast";
import { Cluster } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisCluster, startCluster } from "../../tests/support/redis-cluster.js";

const START_MS = 120_000;
/** Polling is so rare that only a message can wake a waiter during a test. */
const BY_MESSAGE = { recheckMs: 60_000 };
const ROUNDS = 20;

let cluster: RedisCluster;
const made: { readonly client: Cluster; readonly holdfast: Holdfast }[] = [];

beforeAll(async () => {
  cluster = await startCluster();
}, START_MS);
afterAll(async () => {
  for (const { client, holdfast } of made) {
    await holdfast.close();
    client.disconnect();
  }
  await cluster?.stop();
});

function process(publish: Publish): Redisson {
  const client = new Cluster(
    cluster.ports.map((port) => ({ port, host: "127.0.0.1" })),
    { shardedSubscribers: true },
  );
  client.on("error", () => {});
  const holdfast = createHoldfast({ redis: client });
  made.push({ client, holdfast });
  return redisson(holdfast, { publish });
}

describe.each(["plain", "sharded", "both"] as const)("published %s", (publish) => {
  let one: Redisson;
  let other: Redisson;
  beforeAll(() => {
    one = process(publish);
    other = process(publish);
  });

  test.each([
    ["without braces", (id: string) => id],
    ["with a hash tag in front", (id: string) => `{${id}}x`],
    ["with a hash tag at the end", (id: string) => `order:{${id}}`],
  ])("permits go from one process to the other by messages, with a name %s", async (_, nameOf) => {
    const [plain, expirable] = [nameOf(randomUUID()), nameOf(randomUUID())];
    for (const sides of [
      [one.semaphore(plain, BY_MESSAGE), other.semaphore(plain, BY_MESSAGE)],
      [one.permitExpirableSemaphore(expirable, BY_MESSAGE), other.permitExpirableSemaphore(expirable, BY_MESSAGE)],
    ] as const) {
      expect(await sides[0].trySetPermits(1)).toBe(true);
      let lease = await sides[0].acquire({ leaseMs: 600_000 });
      for (let round = 0; round < ROUNDS; round += 1) {
        const next = sides[(round + 1) % 2]?.acquire({ leaseMs: 600_000, waitMs: 30_000 });
        // A random delay, so that the release comes before or after the subscription.
        await new Promise((go) => setTimeout(go, Math.random() * 30));
        expect(await lease.release()).toBe("released");
        lease = (await next) ?? lease;
      }
      expect(await lease.release()).toBe("released");
      expect(await sides[1].availablePermits()).toBe(1);
    }
  });

  test("a latch opens for the other process by a message", async () => {
    const name = randomUUID();
    await one.countDownLatch(name).trySetCount(2);
    const waiting = [
      one.countDownLatch(name, BY_MESSAGE).await({ waitMs: 30_000 }),
      other.countDownLatch(name, BY_MESSAGE).await({ waitMs: 30_000 }),
    ];
    await new Promise((go) => setTimeout(go, 50));
    await other.countDownLatch(name).countDown();
    expect(await one.countDownLatch(name).countDown()).toBe(0);
    await Promise.all(waiting);
    expect(() => one.countDownLatch(`{${name}}`)).toThrow(RangeError);
  });
});
