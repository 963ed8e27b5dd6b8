/**
 * Java services whose clock is a minute ahead or behind: the effects on waits, and that mutual exclusion still holds.
 */

import { type Redisson, redisson } from "@holdfast/interop/redisson";
import { createHoldfast, type Holdfast, LeaseLostError } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../packages/holdfast/src/testing/delays.js";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { CONTENTION_MS, expectNoLostUpdate } from "./contention.js";
import { type Peer, startRedisson } from "./peer.js";
import { connect, type JavaClient } from "./redisson-peer.js";
import { freshThread, javaSide, LONG_LEASE_MS, nodeSide, PATIENCE_MS, type Side } from "./sides.js";

const MINUTE_MS = 60_000;

describe.each([
  ["ahead", MINUTE_MS],
  ["behind", -MINUTE_MS],
])("a Java service whose clock is a minute %s", (way, clockAheadMs) => {
  let server: RedisServer;
  let redis: Redis;
  let holdfast: Holdfast;
  let here: Redisson;
  let java: Peer;
  let there: JavaClient;
  let count = 0;

  beforeAll(async () => {
    java = startRedisson("4.7.0", clockAheadMs);
    server = await startRedis();
    redis = new Redis(server.url);
    holdfast = createHoldfast({ redis });
    here = redisson(holdfast);
    there = await connect(java, { port: server.port });
  });
  afterAll(async () => {
    await holdfast.close();
    redis.disconnect();
    await java.stop();
    await server.stop();
  });

  const fresh = (): string => {
    count += 1;
    return `clocked:${way}:${count}`;
  };
  const scores = async (name: string): Promise<number[]> =>
    (await redis.zrange(`redisson_lock_timeout:{${name}}`, "0", "-1", "WITHSCORES"))
      .filter((_, i) => i % 2 === 1)
      .map(Number);
  const sides = (): { node: Side; javaSide: Side } => ({
    node: nodeSide(redis, (name) => here.fairLock(name)),
    javaSide: javaSide(there, (name) => ({ type: "fair", name })),
  });

  test("dates its place in the fair queue by its own clock, and Node by the clock of the server", async () => {
    const name = fresh();
    const first = await here.fairLock(name).acquire({ leaseMs: LONG_LEASE_MS });
    const waitMs = 30_000;
    const theirs = freshThread(there).call("tryLock", { type: "fair", name, waitMs, leaseMs: LONG_LEASE_MS });
    await expect.poll(() => scores(name).then((all) => all.length), { timeout: PATIENCE_MS }).toBe(1);
    const [seconds = 0] = (await redis.time()).map(Number);
    const [score = 0] = await scores(name);
    // The rest of the lease plus its own wait, approximately because the measurement takes time.
    expect(Math.abs(score - seconds * 1_000 - clockAheadMs - LONG_LEASE_MS - waitMs)).toBeLessThan(20_000);
    await first.release();
    await theirs;
  });

  test("excludes, and is excluded, in the fair queue as well, and everybody is served", {
    timeout: CONTENTION_MS + 90_000,
  }, async () => {
    const name = fresh();
    const { node, javaSide: other } = sides();
    const contend = (side: Side) => (counter: string) => side.contend(name, counter);
    const contenders = {
      Node: contend(node),
      "Node again": contend(node),
      Java: contend(other),
      "Java again": contend(other),
    };
    await expectNoLostUpdate(redis, contenders, PATIENCE_MS, `fair, Java a minute ${way}`);
    // There are no waiters left, so the only remaining keys are those that expire.
    await expect
      .poll(() => redis.exists(name, `redisson_lock_queue:{${name}}`, `redisson_lock_timeout:{${name}}`), {
        timeout: PATIENCE_MS,
      })
      .toBe(0);
  });

  test("does not affect an RLock, which expires by the clock of the server", async () => {
    const name = fresh();
    const holder = freshThread(there);
    await holder.call("lock", { name, leaseMs: 2_000 });
    expect(await here.lock(name).tryAcquire()).toBeNull();
    const leftMs = await redis.pttl(name);
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(2_000);
    const lease = await here.lock(name).acquire({ waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
    expect(await there.call("tryLock", { name })).toBe(false);
    expect(await lease.release()).toBe("released");
  });

  test("reclaims permits of Node too early if its clock is ahead, and notifies their holder; never if its clock is behind", async () => {
    const name = fresh();
    const seats = here.permitExpirableSemaphore(name);
    await seats.trySetPermits(1);
    const lease = await seats.acquire({ leaseMs: 30_000 });
    const taken = await there.call<string | null>("permit.tryAcquire", { name, leaseMs: LONG_LEASE_MS });
    if (clockAheadMs < 0) {
      expect(taken).toBeNull();
      expect(await lease.release()).toBe("released");
      return;
    }
    expect(taken).toMatch(/^[\da-f]{32}$/);
    await until(() => lease.signal.aborted, "our holder is told");
    await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
    expect(await seats.acquiredPermits()).toBe(1);
  });
});
