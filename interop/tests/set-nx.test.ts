/**
 * The native mutex on a mapped key, shared with clients that use SET key value NX PX: redis-py's Lock, and a shell
 * script.
 */
import { createHoldfast, type Holdfast, LeaseLostError, type Mutex } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../packages/holdfast/src/testing/delays.js";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { CONTENTION_MS, contendHere, expectNoLostUpdate } from "./contention.js";
import { type Peer, startRedisPy, startShell } from "./peer.js";

/** Never reached, because all locks are released before. */
const LONG_LEASE_MS = 120_000;
const PATIENCE_MS = 40_000;
/** Short enough to wait for its end. */
const SHORT_LEASE_MS = 1_500;

/** A client in another language. */
interface SetNxClient {
  readonly peer: Peer;
  tryAcquire(name: string, leaseMs: number): Promise<boolean>;
  acquire(name: string, leaseMs: number): Promise<boolean>;
  /** Rejects or returns false if the client no longer held the lock. */
  release(name: string, leaseMs: number): Promise<boolean>;
}

function redisPy(port: number): SetNxClient {
  const peer = startRedisPy(port);
  return {
    peer,
    tryAcquire: (name, leaseMs) => peer.call("acquire", { name, leaseMs }),
    acquire: (name, leaseMs) => peer.call("acquire", { name, leaseMs, waitMs: PATIENCE_MS }),
    release: (name, leaseMs) => peer.call("release", { name, leaseMs }),
  };
}

function shell(port: number): SetNxClient {
  const peer = startShell(port);
  return {
    peer,
    tryAcquire: (name, leaseMs) => peer.call("tryAcquire", { name, leaseMs }),
    acquire: (name, leaseMs) => peer.call("acquire", { name, leaseMs, waitMs: PATIENCE_MS }),
    release: (name) => peer.call("release", { name }),
  };
}

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let count = 0;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  holdfast = createHoldfast({ redis });
});
afterAll(async () => {
  await holdfast.close();
  redis.disconnect();
  await server.stop();
});

function shared(): { key: string; mutex: Mutex } {
  count += 1;
  const key = `shared:${count}`;
  return { key, mutex: holdfast.mutex(`own name ${count}`, { key, recheckMs: 100 }) };
}

describe.each([
  ["redis-py", redisPy],
  ["a shell script", shell],
])("a mutex on a mapped key and %s", (_, start) => {
  const started: SetNxClient[] = [];
  afterEach(async () => {
    await Promise.all(started.splice(0).map(({ peer }) => peer.kill()));
  });
  function client(): SetNxClient {
    const one = start(server.port);
    started.push(one);
    return one;
  }

  test("a waiter of Holdfast gets the lock after the other client releases it", async () => {
    const { key, mutex } = shared();
    const there = client();
    expect(await there.tryAcquire(key, LONG_LEASE_MS)).toBe(true);
    expect(await mutex.tryAcquire()).toBeNull();
    const waiting = mutex.acquire({ waitMs: PATIENCE_MS });
    expect(await there.release(key, LONG_LEASE_MS)).toBe(true);
    const lease = await waiting;
    expect(await there.tryAcquire(key, LONG_LEASE_MS)).toBe(false);
    expect(await lease.release()).toBe("released");
  });

  test("a waiter of the other client gets the lock after Holdfast releases it", async () => {
    const { key, mutex } = shared();
    const there = client();
    const lease = await mutex.acquire({ leaseMs: LONG_LEASE_MS });
    expect(await there.tryAcquire(key, LONG_LEASE_MS)).toBe(false);
    const waiting = there.acquire(key, LONG_LEASE_MS);
    expect(await lease.release()).toBe("released");
    expect(await waiting).toBe(true);
    expect(await mutex.tryAcquire()).toBeNull();
    expect(await there.release(key, LONG_LEASE_MS)).toBe(true);
    const next = await mutex.acquire();
    expect(await next.release()).toBe("released");
  });

  test("Holdfast gets the lock of a crashed holder of the other client when its lease is over", async () => {
    const { key, mutex } = shared();
    const there = client();
    expect(await there.tryAcquire(key, SHORT_LEASE_MS)).toBe(true);
    await there.peer.kill();
    const holder = await redis.get(key);
    const lease = await mutex.acquire({ waitMs: PATIENCE_MS });
    expect(await redis.get(key)).not.toBe(holder);
    expect(await lease.release()).toBe("released");
  });

  test("the other client gets the lock of a crashed holder of Holdfast when its lease is over, and the old holder notices", async () => {
    const { key, mutex } = shared();
    const there = client();
    const lease = await mutex.acquire({ leaseMs: SHORT_LEASE_MS, renew: false });
    expect(await there.acquire(key, LONG_LEASE_MS)).toBe(true);
    expect(lease.validForMs()).toBe(0);
    await until(() => lease.signal.aborted, "its holder finds out");
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    expect(await there.release(key, LONG_LEASE_MS)).toBe(true);
  });

  test("a late holder of the other client does not release a lock of Holdfast", async () => {
    const { key, mutex } = shared();
    const there = client();
    expect(await there.tryAcquire(key, SHORT_LEASE_MS)).toBe(true);
    const lease = await mutex.acquire({ waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
    expect(await there.release(key, SHORT_LEASE_MS).catch(() => false)).toBe(false);
    expect(await lease.release()).toBe("released");
  });

  test("a renewed lease of Holdfast outlives its length, and the other client stays refused", async () => {
    const { key, mutex } = shared();
    const there = client();
    const lease = await mutex.acquire({ leaseMs: 2 * SHORT_LEASE_MS });
    const owner = await redis.get(key);
    const overAtMs = Date.now() + 2 * SHORT_LEASE_MS;
    while (Date.now() <= overAtMs) expect(await there.tryAcquire(key, LONG_LEASE_MS)).toBe(false);
    expect(await redis.get(key)).toBe(owner);
    expect(await lease.release()).toBe("released");
  });

  test("a forced release by Holdfast frees a lock of the other client, whose holder notices", async () => {
    const { key, mutex } = shared();
    const there = client();
    expect(await there.tryAcquire(key, LONG_LEASE_MS)).toBe(true);
    const owner = await redis.get(key);
    expect(await mutex.forceRelease({ owner: String(owner) })).toBe(true);
    expect(await redis.exists(key)).toBe(0);
    expect(await there.release(key, LONG_LEASE_MS).catch(() => false)).toBe(false);
    const lease = await mutex.acquire();
    await redis.set(key, "somebody who forces it", "PX", LONG_LEASE_MS);
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
  });
});

test("a counter that only the lock protects loses no update, with Node and redis-py at random", {
  timeout: CONTENTION_MS + 60_000,
}, async () => {
  const { key, mutex } = shared();
  const peers = [startRedisPy(server.port), startRedisPy(server.port)];
  const there = (peer: Peer | undefined) => async (counter: string) => {
    if (peer === undefined) throw new Error("there are two peers");
    return await peer.call<{ rounds: number; refusals: number; longestWaitMs: number }>("contend", {
      name: key,
      counter,
      forMs: CONTENTION_MS,
      leaseMs: LONG_LEASE_MS,
      waitMs: PATIENCE_MS,
    });
  };
  const here = (counter: string): ReturnType<typeof contendHere> =>
    contendHere(redis, counter, () => mutex.acquire({ waitMs: PATIENCE_MS }));
  const contenders = { here, "redis-py": there(peers[0]), "another redis-py": there(peers[1]) };
  await expectNoLostUpdate(redis, contenders, PATIENCE_MS, "SET NX PX with redis-py");
  await Promise.all(peers.map((peer) => peer.stop()));
});
