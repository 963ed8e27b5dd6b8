/**
 * The locks of the articles on a cluster: their programs connect to the primary of the lock's slot, Holdfast to the
 * whole cluster.
 */

import { javaUuid, type TimestampLock, timestampLock } from "@holdfast/interop/timestamp";
import { AcquireTimeoutError, createHoldfast, type Holdfast, LeaseLostError } from "holdfast";
import { Cluster } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clusterSlot } from "../../packages/holdfast/tests/unit/cluster-slot.js";
import { type RedisCluster, startCluster } from "../../tests/support/redis-cluster.js";
import { ARTICLES, type ArticleClient, lockAtLast } from "./articles.js";
import {
  type Contender,
  type Contenders,
  contendHere,
  ELSEWHERE_MS,
  expectNoLostUpdate,
  type Held,
} from "./contention.js";
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

// Names in different slots, so that each primary has some, and names where the hash tag decides.
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

  test("a counter that only the lock protects loses no update, with both sides at random", {
    timeout: 2 * ELSEWHERE_MS + 90_000,
  }, async () => {
    const own = `contended:${article.title.at(8)}`;
    const lock = timestampLock(holdfast, own, article.dialect, { overwritten: "delete" });
    const { port } = await cluster.masterOf(clusterSlot(lock.key));
    const clients = await Promise.all([article.start({ port }, java), article.start({ port }, java)]);
    const there = (client: ArticleClient) => (counter: string) => client.contend(own, counter, ELSEWHERE_MS);
    const contenders = { here: hereOf(lock, article.frees), there: there(clients[0]), again: there(clients[1]) };
    try {
      await expectContended(lock, contenders, `cluster, ${article.title}`, article.frees);
    } finally {
      for (const client of clients) await client.crash();
    }
  });
});

test("article E in Java loses no update, and each side excludes the other", {
  timeout: 2 * ELSEWHERE_MS + 90_000,
}, async () => {
  const lock = timestampLock(holdfast, "source:{7}", javaUuid);
  const { port } = await cluster.masterOf(clusterSlot(lock.key));
  const places = await Promise.all(
    ["one", "another"].map(async (each) => {
      const place = { lock: `uuid lock, ${each}`, thread: `thread, ${each}` };
      await java.call("uuid.create", { ...place, name: lock.key, port });
      return place;
    }),
  );
  expect(await java.call("uuid.tryLock", places[0])).toBe(true);
  expect(await lock.tryAcquire()).toBeNull();
  const waiting = lock.acquire({ waitMs: PATIENCE_MS });
  expect(await java.call("uuid.unlock", places[0])).toBe(true);
  const lease = await waiting;
  expect(await java.call("uuid.tryLock", places[1])).toBe(false);
  expect(await lease.release()).toBe("released");

  const there = (place: object) => (counter: string) =>
    java.call<Contender>("uuid.contend", { ...place, port, counter, forMs: ELSEWHERE_MS });
  const [one = {}, other = {}] = places;
  const contenders = { here: hereOf(lock, true), there: there(one), again: there(other) };
  await expectContended(lock, contenders, "cluster, article E in Java", true);
});

/**
 * @param isSure  whether a turn is certain during the run. Clients of article B retry without a pause, so turns are
 * not guaranteed
 */
function hereOf(lock: TimestampLock, isSure: boolean): (counter: string) => Promise<Contender> {
  const acquire = (): Promise<Held | null> =>
    isSure ? lock.acquire({ waitMs: PATIENCE_MS }) : lock.acquire({ waitMs: PATIENCE_MS / 8 }).catch(unlessTimedOut);
  return (counter) => contendHere(nodes, counter, acquire, ELSEWHERE_MS);
}

function unlessTimedOut(error: unknown): null {
  if (error instanceof AcquireTimeoutError) return null;
  throw error;
}

/** The counter is on the lock's server, because the programs know only one server. */
async function expectContended(
  lock: TimestampLock,
  contenders: Contenders,
  what: string,
  isSure: boolean,
): Promise<void> {
  const counter = lock.key.includes("{") ? `counter of ${lock.key}` : `counter of {${lock.key}}`;
  await expectNoLostUpdate(nodes, contenders, PATIENCE_MS, what, { counter, isSure });
}
