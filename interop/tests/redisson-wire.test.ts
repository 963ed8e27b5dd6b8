/** What Redisson itself writes and publishes, by type. Holdfast must read it, and must write what Java expects. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { type Listener, listen } from "./listener.js";
import { type Peer, REDISSONS, startRedisson } from "./peer.js";
import { connect, type JavaClient } from "./redisson-peer.js";

const LEASE_MS = 60_000;

describe.each(REDISSONS)("Redisson %s", (version) => {
  let server: RedisServer;
  let java: Peer;
  let redis: Redis;
  let listener: Listener;
  let one: JavaClient;
  let other: JavaClient;
  let count = 0;

  beforeAll(async () => {
    java = startRedisson(version);
    server = await startRedis();
    redis = new Redis(server.url);
    listener = await listen(server.port, "redisson_*");
    one = await connect(java, { port: server.port });
    other = await connect(java, { port: server.port });
  });
  afterAll(async () => {
    redis.disconnect();
    listener.stop();
    await java.stop();
    await server.stop();
  });

  const fresh = (what: string): string => {
    count += 1;
    return `${what}${count}`;
  };
  async function expectLease(key: string): Promise<void> {
    const leftMs = await redis.pttl(key);
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(LEASE_MS);
  }
  /** Filters names by pattern, because an unlock latch may not be deleted yet. */
  async function keysOf(name: string): Promise<string[]> {
    return (await redis.keys(`*${name}*`)).filter((key) => !key.includes("unlock_latch")).toSorted();
  }

  test("reports its version", async () => {
    expect(await java.call("version")).toBe(version);
  });

  test.each([
    ["order", "redisson_lock__channel:{order}"],
    ["order:{42}", "redisson_lock__channel:order:{42}"],
  ])("RLock %s: a hash of owner and count, and 0 on its channel", async (name, channel) => {
    const lock = { name };
    const owner = await one.thread("main").owner();
    expect(owner).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+$/);
    expect(await one.call("tryLock", { ...lock, leaseMs: LEASE_MS })).toBe(true);
    expect(await redis.hgetall(name)).toEqual({ [owner]: "1" });
    await expectLease(name);
    expect(await other.call("tryLock", lock)).toBe(false);
    expect(await other.call("isLocked", lock)).toBe(true);
    expect(await one.call("tryLock", { ...lock, leaseMs: LEASE_MS })).toBe(true);
    expect(await redis.hgetall(name)).toEqual({ [owner]: "2" });
    await one.call("unlock", lock);
    expect(await redis.hgetall(name)).toEqual({ [owner]: "1" });
    expect(await listener.heard()).toEqual([]);
    await one.call("unlock", lock);
    expect(await redis.exists(name)).toBe(0);
    expect(await listener.heard()).toEqual([{ channel, message: "0" }]);
    await expect(one.call("unlock", lock)).rejects.toMatchObject({ kind: "IllegalMonitorStateException" });
  });

  test("RLock: a nested acquire with a shorter lease shortens the lease", async () => {
    const lock = { name: fresh("reentry") };
    await one.call("lock", { ...lock, leaseMs: LEASE_MS });
    await one.call("lock", { ...lock, leaseMs: 5_000 });
    expect(await redis.pttl(lock.name)).toBeLessThanOrEqual(5_000);
  });

  test("RLock: a force-unlock deletes the lock and publishes 0, and the holder notices only when it unlocks", async () => {
    const lock = { name: fresh("forced") };
    await one.call("lock", { ...lock, leaseMs: LEASE_MS });
    expect(await other.call("forceUnlock", lock)).toBe(true);
    expect(await listener.heard()).toEqual([{ channel: `redisson_lock__channel:{${lock.name}}`, message: "0" }]);
    expect(await other.call("forceUnlock", lock)).toBe(false);
    await expect(one.call("unlock", lock)).rejects.toMatchObject({ kind: "IllegalMonitorStateException" });
  });

  test("a name mapper adds its prefix before the name, inside the braces of the channel", async () => {
    const mapped = await connect(java, { port: server.port, prefix: "svc:" });
    const name = fresh("mapped");
    await mapped.call("lock", { name, leaseMs: LEASE_MS });
    expect(await keysOf(name)).toEqual([`svc:${name}`]);
    await mapped.call("unlock", { name });
    expect(await listener.heard()).toEqual([{ channel: `redisson_lock__channel:{svc:${name}}`, message: "0" }]);
  });

  test("a fair lock: waiters in a list, their deadlines in a sorted set, and a channel for each", async () => {
    const fair = { type: "fair", name: fresh("fair") };
    const queue = `redisson_lock_queue:{${fair.name}}`;
    const timeout = `redisson_lock_timeout:{${fair.name}}`;
    await one.call("lock", { ...fair, leaseMs: LEASE_MS });
    const askedAtMs = Date.now();
    const waiting = other.call("tryLock", { ...fair, waitMs: 100_000, leaseMs: LEASE_MS });
    const waiter = await other.thread("observer").owner();
    await expect.poll(() => redis.lrange(queue, 0, -1)).toHaveLength(1);
    const [queued = ""] = await redis.lrange(queue, 0, -1);
    expect(queued.split(":")[0]).toBe(waiter.split(":")[0]);
    const deadlineMs = Number(await redis.zscore(timeout, queued));
    expect(deadlineMs - askedAtMs).toBeGreaterThan(100_000);
    expect(deadlineMs - askedAtMs).toBeLessThanOrEqual(100_000 + LEASE_MS + (Date.now() - askedAtMs));
    expect(await keysOf(fair.name)).toEqual([fair.name, queue, timeout].toSorted());
    await one.call("unlock", fair);
    expect(await waiting).toBe(true);
    expect(await listener.heard()).toEqual([
      { channel: `redisson_lock__channel:{${fair.name}}:${queued}`, message: "0" },
    ]);
    expect(await keysOf(fair.name)).toEqual([fair.name]);
    await other.call("unlock", fair);
  });

  test("a fair lock: unlocking an expired lock is not an error", async () => {
    const fair = { type: "fair", name: fresh("fair") };
    await one.call("lock", { ...fair, leaseMs: LEASE_MS });
    await redis.del(fair.name);
    expect(await one.call("unlock", fair)).toBe(true);
  });

  test("a read-write lock: a mode, a field for each owner, and a key for each read hold", async () => {
    const name = fresh("rw");
    const [read, write] = [
      { type: "read", name },
      { type: "write", name },
    ] as const;
    const [a, b] = [await one.thread("main").owner(), await other.thread("main").owner()];
    await one.call("lock", { ...read, leaseMs: LEASE_MS });
    await one.call("lock", { ...read, leaseMs: LEASE_MS });
    expect(await other.call("tryLock", { ...read, leaseMs: LEASE_MS })).toBe(true);
    expect(await redis.hgetall(name)).toEqual({ mode: "read", [a]: "2", [b]: "1" });
    const holds = [`{${name}}:${a}:rwlock_timeout:1`, `{${name}}:${a}:rwlock_timeout:2`];
    expect(await keysOf(name)).toEqual([name, ...holds, `{${name}}:${b}:rwlock_timeout:1`].toSorted());
    expect(await redis.get(holds[0] as string)).toBe("1");
    for (const hold of holds) await expectLease(hold);
    expect(await other.call("tryLock", write)).toBe(false);

    await one.call("unlock", read);
    await one.call("unlock", read);
    expect(await listener.heard()).toEqual([]);
    await other.call("unlock", read);
    expect(await keysOf(name)).toEqual([]);
    const channel = `redisson_rwlock:{${name}}`;
    expect(await listener.heard()).toEqual([{ channel, message: "0" }]);

    await one.call("lock", { ...write, leaseMs: LEASE_MS });
    expect(await redis.hgetall(name)).toEqual({ mode: "write", [`${a}:write`]: "1" });
    await one.call("lock", { ...read, leaseMs: LEASE_MS });
    await one.call("unlock", write);
    expect(await redis.hgetall(name)).toEqual({ mode: "read", [a]: "1" });
    expect(await listener.heard(), "a downgrade wakes nobody").toEqual([]);
    await one.call("unlock", read);
    await listener.heard();
    await one.call("lock", { ...write, leaseMs: LEASE_MS });
    await one.call("unlock", write);
    expect(await listener.heard()).toEqual([{ channel, message: "1" }]);
  });

  test("the known trap: the next reader of Java removes the hash field of a reader without a hold key", async () => {
    const read = { type: "read", name: fresh("trap") };
    await one.call("lock", { ...read, leaseMs: LEASE_MS });
    await redis.hset(read.name, "0c4f6c1e-5f3f-4d0b-9d59-0f2b8b6f5a01:1", "1");
    await one.call("unlock", read);
    expect(await redis.exists(read.name)).toBe(0);
  });

  test("a fenced lock: a counter without expiry, which also counts nested acquires", async () => {
    const fenced = { type: "fenced", name: fresh("fenced") };
    const token = `redisson_lock_token:{${fenced.name}}`;
    expect(await one.call("lockAndGetToken", fenced)).toBe(1);
    expect(await one.call("lockAndGetToken", fenced)).toBe(2);
    await one.call("unlock", fenced);
    await one.call("unlock", fenced);
    expect(await redis.get(token)).toBe("2");
    expect(await redis.pttl(token)).toBe(-1);
    expect(await other.call("tryLockAndGetToken", { ...fenced, leaseMs: LEASE_MS })).toBe(3);
    expect(await one.call("tryLockAndGetToken", { ...fenced, leaseMs: LEASE_MS })).toBeNull();
    expect(await one.call("getToken", fenced), "that of the world, not its own").toBe(3);
  });

  test("a spin lock: the hash of an RLock, and its unlock publishes nothing", async () => {
    const spin = { type: "spin", name: fresh("spin") };
    await listener.heard();
    await one.call("lock", { ...spin, leaseMs: LEASE_MS });
    expect(await redis.hgetall(spin.name)).toEqual({ [await one.thread("main").owner()]: "1" });
    await one.call("unlock", spin);
    expect(await listener.heard()).toEqual([]);
  });

  test("a multi-lock: the RLocks of its names, all or none", async () => {
    const names = [fresh("multi"), fresh("multi")];
    const multi = { type: "multi", names };
    await other.call("lock", { name: names[1], leaseMs: LEASE_MS });
    expect(await one.call("tryLock", multi)).toBe(false);
    expect(await redis.exists(names[0] as string)).toBe(0);
    await other.call("unlock", { name: names[1] });
    expect(await one.call("tryLock", multi)).toBe(true);
    expect(await redis.exists(...names)).toBe(2);
    await one.call("unlock", multi);
    expect(await redis.exists(...names)).toBe(0);
  });

  test("a semaphore: a number without owners, and the number of free permits on its channel", async () => {
    const name = fresh("semaphore");
    const channel = `redisson_sc:{${name}}`;
    await listener.heard();
    expect(await one.call("semaphore.trySetPermits", { name, permits: 3 })).toBe(true);
    expect(await one.call("semaphore.trySetPermits", { name, permits: 5 })).toBe(false);
    expect(await one.call("semaphore.tryAcquire", { name, permits: 2 })).toBe(true);
    expect(await other.call("semaphore.tryAcquire", { name, permits: 2 })).toBe(false);
    expect(await redis.get(name)).toBe("1");
    await other.call("semaphore.release", { name, permits: 4 });
    expect(await redis.get(name), "nobody is asked whether it held what it gives back").toBe("5");
    expect(await listener.heard()).toEqual([
      { channel, message: "3" },
      { channel, message: "5" },
    ]);
    expect(await redis.pttl(name)).toBe(-1);
  });

  test("a semaphore of expirable permits: raw ids by deadline, and 'never' for those without a lease", async () => {
    const name = fresh("permits");
    await one.call("permit.trySetPermits", { name, permits: 3 });
    const id = await one.call<string>("permit.tryAcquire", { name, leaseMs: LEASE_MS });
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    const ranked = await redis.callBuffer("ZRANGE", `{${name}}:timeout`, "0", "-1", "WITHSCORES");
    // RESP3 returns pairs of member and score; RESP2 returns a flat list.
    const [member, score] = [ranked].flat(3) as Buffer[];
    expect(member?.toString("hex")).toBe(id);
    expect(String(score)).toMatch(/^\d+$/);
    expect(Number(score)).toBeGreaterThan(Date.now());
    const never = await other.call<string>("permit.tryAcquire", { name });
    expect(await redis.zscore(`{${name}}:timeout`, Buffer.from(never, "hex"))).toBe("922337203685477");
    expect(await redis.get(name)).toBe("1");
    expect(await other.call("permit.tryRelease", { name, permitId: id }), "by anybody who knows its id").toBe(true);
    await redis.zadd(`{${name}}:timeout`, 1, Buffer.from(never, "hex"));
    await expect(other.call("permit.release", { name, permitId: never })).rejects.toThrow("IllegalArgumentException");
    expect(await redis.get(name), "although it has been given back").toBe("3");
  });

  test("a count-down latch: a number, 0 on its channel when it opens, and always braces around the name", async () => {
    const name = fresh("latch:{x}:");
    await listener.heard();
    expect(await one.call("latch.trySetCount", { name, count: 2 })).toBe(true);
    const waiting = other.thread("waiter").call("latch.await", { name, waitMs: 30_000 });
    await one.call("latch.countDown", { name });
    expect(await redis.get(name)).toBe("1");
    await one.call("latch.countDown", { name });
    expect(await waiting).toBe(true);
    expect(await redis.exists(name)).toBe(0);
    expect(await listener.heard()).toEqual(
      ["1", "0"].map((message) => ({ channel: `redisson_countdownlatch__channel__{${name}}`, message })),
    );
    expect(await one.call("latch.await", { name, waitMs: 0 })).toBe(true);
  });

  test("the watchdog renews only as long as the client lives", async () => {
    const name = fresh("renewed");
    const renewing = await connect(java, { port: server.port, watchdogMs: 6_000 });
    await renewing.call("lock", { name });
    await redis.pexpire(name, 4_500);
    await expect.poll(() => redis.pttl(name)).toBeGreaterThan(4_550);
    await renewing.crash();
    await expect.poll(() => redis.exists(name), { timeout: 20_000 }).toBe(0);
    expect(await other.call("tryLock", { name })).toBe(true);
    await other.call("unlock", { name });
  });
});
