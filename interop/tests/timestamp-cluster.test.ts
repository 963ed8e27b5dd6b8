/** The locks of the articles on a cluster: their programs speak to the master of the lock's slot, ours to the whole. */
import { createHoldfast, type Holdfast, LeaseLostError } from "holdfast";
import { timestampLock } from "holdfast/timestamp";
import { Cluster } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clusterSlot } from "../../packages/holdfast/tests/unit/cluster-slot.js";
import { type RedisCluster, startCluster } from "../../tests/support/redis-cluster.js";
import { ARTICLES, type ArticleClient, lockAtLast } from "./articles.js";
import { type Peer, startJedis } from "./peer.js";

const START_MS = 120_000;
const PATIENCE_MS = 40_000;
const LONG_LEASE_MS = 120_000;

let cluster: RedisCluster;
let nodes: Cluster;
let holdfast: Holdfast;
let java: Peer;

beforeAll(async () => {
  java = startJedis();
  cluster = await startCluster({ nodeTimeoutMs: 15_000 });
  nodes = new Cluster(
    cluster.ports.map((port) => ({ host: "127.0.0.1", port })),
    { shardedSubscribers: true },
  );
  holdfast = createHoldfast({ redis: nodes });
}, START_MS);
afterAll(async () => {
  await holdfast?.close();
  nodes?.disconnect();
  await java?.stop();
  await cluster?.stop();
});

// Different slots, so that each master has some; and one where the tag decides.
const NAMES = ["stock", "order:7", "{t}x", "goods{42}", "a{b", "account:1"];

describe.each(ARTICLES.map((article) => [article.title, article] as const))("%s", (_, article) => {
  test.each(NAMES)(
    "the lock of %s is held on one side and refused on the other, and its keys are in one slot",
    async (name) => {
      const own = `${name}:${article.title.at(8)}`;
      const lock = timestampLock(holdfast, own, article.dialect);
      const { port } = await cluster.masterOf(clusterSlot(lock.key));
      const there: ArticleClient = await article.start({ port }, java);
      try {
        const lease = await lock.acquire({ leaseMs: LONG_LEASE_MS });
        expect(await there.tryLock(own)).toBe(false);
        await lease.extend(LONG_LEASE_MS);
        expect((await lock.inspect()).holders).toMatchObject([{ owner: lease.owner, token: lease.token }]);
        expect(await lease.release()).toBe("released");

        await lockAtLast(there, own);
        expect(await lock.tryAcquire()).toBeNull();
        const [holder] = (await lock.inspect()).holders;
        const waiting = lock.acquire({ waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
        if (article.frees) await there.unlock(own);
        const next = await waiting;
        expect(next.owner).not.toBe(holder?.owner);
        expect(await lock.forceRelease({ token: next.token })).toBe(true);
        await expect(next.release()).rejects.toBeInstanceOf(LeaseLostError);
      } finally {
        await there.crash();
      }
    },
  );
});
