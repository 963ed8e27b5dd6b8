/** A subscriber connection behind Sentinel that has been closed. */
import { createSentinel } from "redis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisSentinel, startSentinel } from "../../../../tests/support/redis-sentinel.js";
import { nodeRedisSubscriber } from "../../src/stores/node-redis.js";

let topology: RedisSentinel;
beforeAll(async () => {
  // No test here needs a failover, and a busy machine that stalls for a moment must not cause one.
  topology = await startSentinel({ downAfterMs: 60_000 });
});
afterAll(() => topology?.stop());

const nothing = (): void => {};

test("behind Sentinel, a closed subscriber rejects subscriptions and leaves none on the server", async () => {
  const { addresses, name } = topology;
  const sentinel = createSentinel({ name, sentinelRootNodes: [...addresses] });
  const subscriber = nodeRedisSubscriber(sentinel, { onMessage: nothing, onReady: nothing, onEnd: nothing });
  await subscriber.subscribe(["before"]);
  await subscriber.close();
  await expect(subscriber.subscribe(["after"])).rejects.toThrow("the subscriber connection was closed");
  await subscriber.unsubscribe("before");
  const master = await topology.master();
  await vi.waitFor(
    async () => expect(await master.command("PUBSUB", "NUMSUB", "before", "after")).toEqual(["before", 0, "after", 0]),
    { timeout: 10_000 },
  );
});
