/** Redisson's semaphores and latches with lost replies and messages, deleted keys, and names used for other types. */
import { randomUUID } from "node:crypto";
import { LeaseLostError, type Store, StoreError, UnsupportedError } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { storeFor } from "../../../../holdfast/src/stores/detect.js";
import { BY_MESSAGE, untilHeard } from "./peer.js";
import { type OpenSides, openSides } from "./two-sides.js";

const LONG_MS = 600_000;

let sides: OpenSides;
let redis: Redis;
beforeAll(async () => {
  sides = await openSides();
  redis = sides.redis;
});
beforeEach(() => sides.heard());
afterEach(() => sides.end());
afterAll(() => sides?.stop());

/** A Node process that loses the replies to the next requests of a given script after the script has run. */
function hardOfHearing(): ReturnType<OpenSides["process"]> & {
  misses(script: string, times?: number): void;
  sent(): number;
} {
  const client = new Redis({ port: sides.server.port });
  const store = storeFor(client, {});
  let missed = { script: "", times: 0 };
  let sent = 0;
  const run: Store["run"] = async (script, keys, args, timeoutMs) => {
    const reply = await store.run(script, keys, args, timeoutMs);
    if (script.name !== missed.script) return reply;
    sent += 1;
    if (sent > missed.times) return reply;
    throw new StoreError(script.name, { mayHaveRun: true, transient: true, cause: new Error("the answer was lost") });
  };
  const made = sides.processWith({
    store: {
      kind: store.kind,
      run,
      inbox: (...inputs) => store.inbox(...inputs),
      onReconnect: (listener) => store.onReconnect(listener),
      async close() {
        await store.close();
        client.disconnect();
      },
    },
  });
  return {
    ...made,
    misses(script, times = 1) {
      missed = { script: `interop/redisson/${script}`, times };
      sent = 0;
    },
    sent: () => sent,
  };
}

describe("a request whose reply was lost", () => {
  test("takes permits of a plain semaphore once", async () => {
    const name = randomUUID();
    const process = hardOfHearing();
    const semaphore = process.redisson.semaphore(name);
    await semaphore.trySetPermits(5);
    process.misses("semaphore/acquire", 2);
    const lease = await semaphore.acquire({ permits: 2 });
    expect(process.sent()).toBe(3);
    expect(await redis.get(name)).toBe("3");
    process.misses("semaphore/release", 2);
    expect(await lease.release()).toBe("released");
    expect(process.sent()).toBe(3);
    expect(await redis.get(name)).toBe("5");
  });

  test("takes permits with ids once, under the same ids", async () => {
    const name = randomUUID();
    const process = hardOfHearing();
    const semaphore = process.redisson.permitExpirableSemaphore(name);
    await semaphore.trySetPermits(5);
    process.misses("expirable-semaphore/acquire", 2);
    const lease = await semaphore.acquire({ permits: 2, leaseMs: LONG_MS });
    expect(process.sent()).toBe(3);
    expect(await redis.get(name)).toBe("3");
    expect(await redis.zcard(`{${name}}:timeout`)).toBe(2);
    process.misses("expirable-semaphore/release", 2);
    expect(await lease.release()).toBe("released");
    expect(await redis.get(name)).toBe("5");
  });

  test("leaves no permit behind after the caller has given up", async () => {
    const name = randomUUID();
    const process = hardOfHearing();
    for (const [semaphore, script] of [
      [process.redisson.semaphore(name), "semaphore/acquire"],
      [process.redisson.permitExpirableSemaphore(`${name}2`), "expirable-semaphore/acquire"],
    ] as const) {
      await semaphore.trySetPermits(1);
      process.misses(script, Infinity);
      await expect(semaphore.tryAcquire()).rejects.toThrow(StoreError);
      await vi.waitFor(async () => expect(await redis.get(semaphore.name)).toBe("1"));
    }
  });

  test.each([
    ["release", "semaphore/add", 6],
    ["addPermits", "semaphore/add", 6],
    ["drainPermits", "semaphore/drain", 0],
  ] as const)("is applied once: %s", async (verb, script, left) => {
    const name = randomUUID();
    const process = hardOfHearing();
    const semaphore = process.redisson.semaphore(name);
    await semaphore.trySetPermits(5);
    process.misses(script, 2);
    const answer = await semaphore[verb](1);
    expect(process.sent()).toBe(3);
    expect(await redis.get(name)).toBe(String(left));
    if (verb === "drainPermits") expect(answer).toBe(5);
  });

  test("is applied once: permits set, added, changed or released by id", async () => {
    const name = randomUUID();
    const process = hardOfHearing();
    const semaphore = process.redisson.permitExpirableSemaphore(name);
    process.misses("semaphore/try-set-permits");
    expect(await semaphore.trySetPermits(5)).toBe(true);
    process.misses("expirable-semaphore/add-permits");
    await semaphore.addPermits(2);
    expect(await redis.get(name)).toBe("7");
    process.misses("expirable-semaphore/set-permits");
    await semaphore.setPermits(9);
    expect(await redis.get(name)).toBe("9");
    const [one, ...two] = (await semaphore.acquire({ permits: 3, leaseMs: LONG_MS, renew: false })).permitIds;
    process.misses("expirable-semaphore/try-release");
    expect(await semaphore.tryRelease(one ?? "")).toBe("released");
    process.misses("expirable-semaphore/try-release-all");
    expect(await semaphore.tryReleaseAll(two)).toBe(true);
    expect(await redis.get(name)).toBe("9");
  });

  test("is applied once: a latch set, counted down or deleted", async () => {
    const name = randomUUID();
    const process = hardOfHearing();
    const latch = process.redisson.countDownLatch(name);
    process.misses("latch/try-set-count");
    expect(await latch.trySetCount(3)).toBe(true);
    process.misses("latch/count-down", 2);
    expect(await latch.countDown()).toBe(2);
    expect(process.sent()).toBe(3);
    expect(await redis.get(name)).toBe("2");
    process.misses("latch/delete");
    expect(await latch.delete()).toBe(true);
    // The stored replies expire and are in the slot of the key.
    for (const key of (await redis.keys(`*${name}*`)).filter((one) => one !== name)) {
      expect(key).toContain(`{${name}}`);
      expect(await redis.pttl(key)).toBeGreaterThan(0);
    }
  });
});

describe("without any message", () => {
  test("a waiter finds free permits at its next re-check", async () => {
    const name = randomUUID();
    const { redisson } = sides.process();
    for (const semaphore of [
      redisson.semaphore(name, { recheckMs: 50 }),
      redisson.permitExpirableSemaphore(`${name}2`, { recheckMs: 50 }),
    ]) {
      await semaphore.trySetPermits(0);
      const waiting = semaphore.acquire();
      await untilHeard(sides, `redisson_sc:{${semaphore.name}}`, 1);
      await redis.incrby(semaphore.name, 1);
      await (await waiting).release();
    }
  });

  test("a waiter finds the latch at zero at its next re-check", async () => {
    const name = randomUUID();
    const latch = sides.process().redisson.countDownLatch(name, { recheckMs: 50 });
    await latch.trySetCount(1);
    const waiting = latch.await();
    await untilHeard(sides, `redisson_countdownlatch__channel__{${name}}`, 1);
    await redis.del(name);
    await waiting;
  });

  test("a waiter is granted when a Node lease ends, before its next re-check", async () => {
    const name = randomUUID();
    const semaphore = sides.process().redisson.semaphore(name, BY_MESSAGE);
    await semaphore.trySetPermits(1);
    await semaphore.acquire({ leaseMs: 150, renew: false });
    await (await semaphore.acquire()).release();
  });
});

describe("the TTL of a count", () => {
  test("is kept by every change to a plain semaphore, and its lease record follows it", async () => {
    const name = randomUUID();
    const semaphore = sides.process().redisson.semaphore(name);
    await semaphore.trySetPermits(3, { ttlMs: LONG_MS });
    const left = async (): Promise<number> => redis.pttl(name);
    expect(await left()).toBeGreaterThan(LONG_MS / 2);
    const lease = await semaphore.acquire();
    const record = (await redis.keys(`*${name}*`)).filter((key) => /:(?:leases|grants)$/.test(key));
    expect(record).toHaveLength(2);
    for (const key of record) expect(await redis.pttl(key)).toBeGreaterThan(LONG_MS / 2);
    await semaphore.addPermits(2);
    await semaphore.release();
    expect(await semaphore.drainPermits()).toBe(5);
    expect(await left()).toBeGreaterThan(LONG_MS / 2);

    // Java's addPermits removes the TTL. A record that kept its TTL would expire first, and its permits would be lost.
    await sides.peer.call("semaphore.addPermits", { name, permits: 1 });
    expect(await left()).toBe(-1);
    await lease.extend(1_000);
    // The record outlives the lease; the tests of the lease record below check for how long.
    for (const key of record) expect(await redis.pttl(key)).toBeGreaterThan(LONG_MS);
    await lease.release();
    expect(await redis.exists(...record)).toBe(0);
    expect(await redis.get(name)).toBe("2");
  });

  test("applies to the leases of expirable permits too, and survives changes to the number", async () => {
    const name = randomUUID();
    const semaphore = sides.process().redisson.permitExpirableSemaphore(name);
    await semaphore.trySetPermits(3, { ttlMs: LONG_MS });
    const lease = await semaphore.acquire({ leaseMs: 5_000 });
    await semaphore.addPermits(2);
    await semaphore.setPermits(9);
    for (const key of [name, `{${name}}:timeout`]) expect(await redis.pttl(key)).toBeGreaterThan(LONG_MS / 2);
    await redis.persist(name);
    const other = await semaphore.acquire({ leaseMs: 5_000 });
    expect(await redis.pttl(`{${name}}:timeout`)).toBe(-1);
    await Promise.all([lease.release(), other.release()]);
    expect(await redis.get(name)).toBe("9");
  });
});

describe("a deleted semaphore", () => {
  test("loses its leases, and they do not re-create it", async () => {
    const name = randomUUID();
    const { redisson } = sides.process();
    for (const semaphore of [redisson.semaphore(name), redisson.permitExpirableSemaphore(`${name}2`)]) {
      await semaphore.trySetPermits(2);
      const [first, second] = [
        await semaphore.acquire({ leaseMs: 3_000 }),
        await semaphore.acquire({ leaseMs: LONG_MS }),
      ];
      await redis.del(semaphore.name, `{${semaphore.name}}:timeout`);
      await vi.waitFor(() => expect(first.signal.aborted).toBe(true), { timeout: 10_000 });
      expect(first.signal.reason).toBeInstanceOf(LeaseLostError);
      await expect(second.release()).rejects.toThrow(LeaseLostError);
      expect(await redis.exists(semaphore.name)).toBe(0);
      // A semaphore created again under the name starts empty.
      await semaphore.trySetPermits(1);
      expect(await semaphore.availablePermits()).toBe(1);
      expect((await semaphore.inspect()).holders).toEqual([]);
    }
  });
});

test("a force-released holder loses its lease, and its permits come back once", async () => {
  const name = randomUUID();
  const { redisson } = sides.process();
  const plain = redisson.semaphore(name);
  await plain.trySetPermits(2);
  const first = await plain.acquire({ permits: 2, leaseMs: LONG_MS });
  const seen = await plain.inspect();
  expect(seen).toMatchObject({ free: 0, holders: [{ owner: first.owner, token: first.token, permits: 2 }] });
  expect(await plain.forceRelease({ owner: first.owner, token: first.token + 1 })).toBe(false);
  expect(await plain.forceRelease({ token: first.token })).toBe(true);
  expect(await plain.forceRelease({ token: first.token })).toBe(false);
  await expect(first.release()).rejects.toThrow(LeaseLostError);
  expect(await redis.get(name)).toBe("2");

  const permits = redisson.permitExpirableSemaphore(`${name}2`);
  await permits.trySetPermits(1);
  const lease = await permits.acquire({ leaseMs: LONG_MS });
  await expect(permits.forceRelease({ token: lease.token })).rejects.toThrow(UnsupportedError);
  expect(await permits.forceRelease({ owner: lease.owner })).toBe(true);
  expect(await permits.forceRelease({ owner: lease.owner })).toBe(false);
  await expect(lease.release()).rejects.toThrow(LeaseLostError);
  expect(await redis.get(`${name}2`)).toBe("1");
});

test("each of thousands of holders can be force-released by owner or by token", async () => {
  const name = randomUUID();
  const base = `hf:redisson-semaphore:mapped:{${name}}`;
  const semaphore = sides.process().redisson.semaphore(name);
  await semaphore.trySetPermits(2);
  const first = await semaphore.acquire({ leaseMs: LONG_MS });
  const second = await semaphore.acquire({ leaseMs: LONG_MS });
  // The other leases end sooner, so that these two holders are last in the list.
  const others = Array.from({ length: 1_500 }, (_, i) => `other/${i}/1000/1`);
  await redis.zadd(`${base}:leases`, ...others.flatMap((owner, i) => [i + 1, owner]));
  await redis.hset(`${base}:grants`, Object.fromEntries(others.map((owner, i) => [owner, `1/${i + 1}`])));
  expect((await semaphore.inspect()).holders.some(({ owner }) => owner === first.owner)).toBe(false);
  expect(await semaphore.forceRelease({ token: first.token, owner: second.owner })).toBe(false);
  expect(await semaphore.forceRelease({ token: 1_501 })).toBe(false);
  expect(await semaphore.forceRelease({ token: first.token })).toBe(true);
  expect(await semaphore.forceRelease({ owner: second.owner })).toBe(true);
  expect(await redis.get(name)).toBe("2");
  for (const lease of [first, second]) await expect(lease.release()).rejects.toThrow(LeaseLostError);
});

describe("the lease record of a plain semaphore", () => {
  const HUNDRED_DAYS_MS = 100 * 86_400_000;
  const keysOf = (name: string): string[] =>
    ["leases", "grants"].map((key) => `hf:redisson-semaphore:mapped:{${name}}:${key}`);

  test("expires long after the last lease because Java announces no deletion", async () => {
    const name = randomUUID();
    const semaphore = sides.process().redisson.semaphore(name);
    await semaphore.trySetPermits(3);
    await semaphore.acquire({ leaseMs: 2 * LONG_MS, renew: false });
    const lease = await semaphore.acquire({ leaseMs: LONG_MS, renew: false });
    await redis.del(name);
    for (const key of keysOf(name)) {
      const leftMs = await redis.pttl(key);
      expect(leftMs, "after the lease that is longest").toBeGreaterThan(HUNDRED_DAYS_MS + LONG_MS);
      expect(leftMs).toBeLessThanOrEqual(HUNDRED_DAYS_MS + 2 * LONG_MS);
    }
    // The next use by a Node client deletes it earlier.
    await expect(lease.extend(LONG_MS)).rejects.toThrow(LeaseLostError);
    expect(await redis.exists(...keysOf(name))).toBe(0);
  });

  test("is deleted when a Node client uses a semaphore that is gone", async () => {
    for (const look of ["tryAcquire", "availablePermits", "trySetPermits"] as const) {
      const name = randomUUID();
      const semaphore = sides.process().redisson.semaphore(name);
      await semaphore.trySetPermits(1);
      await semaphore.acquire({ leaseMs: LONG_MS, renew: false });
      await redis.del(name);
      if (look === "trySetPermits") await semaphore.trySetPermits(1);
      else await semaphore[look]();
      expect(await redis.exists(...keysOf(name)), look).toBe(0);
    }
  });

  test("follows the TTL of the count as that is set and removed", async () => {
    const name = randomUUID();
    const semaphore = sides.process().redisson.semaphore(name);
    await semaphore.trySetPermits(1, { ttlMs: LONG_MS });
    const lease = await semaphore.acquire({ leaseMs: 30_000 });
    for (const key of keysOf(name)) expect(await redis.pttl(key)).toBeLessThanOrEqual(LONG_MS);
    await redis.persist(name);
    await lease.extend(30_000);
    for (const key of keysOf(name)) expect(await redis.pttl(key)).toBeGreaterThan(HUNDRED_DAYS_MS);
    await redis.pexpire(name, LONG_MS);
    await lease.extend(30_000);
    for (const key of keysOf(name)) expect(await redis.pttl(key)).toBeLessThanOrEqual(LONG_MS);
    expect(await lease.release()).toBe("released");
  });
});

test("thousands of expired permits are reclaimed in batches, and all of them by a count", async () => {
  const name = randomUUID();
  const timeout = `{${name}}:timeout`;
  const semaphore = sides.process().redisson.permitExpirableSemaphore(name);
  await semaphore.trySetPermits(0);
  const dead = Array.from({ length: 2_500 }, (_, i) => [i + 1, `dead permit ${i}`]).flat();
  await redis.zadd(timeout, ...dead);
  const lease = await semaphore.acquire({ leaseMs: LONG_MS });
  expect(await redis.zcard(timeout)).toBe(1_501);
  expect(await semaphore.availablePermits()).toBe(2_499);
  expect(await semaphore.acquiredPermits()).toBe(1);
  await lease.release();
});

test("permits of hundreds of crashed holders come back when they are needed or counted", async () => {
  const name = randomUUID();
  const semaphore = sides.process().redisson.semaphore(name);
  await semaphore.trySetPermits(450);
  await Promise.all(Array.from({ length: 450 }, () => semaphore.acquire({ leaseMs: LONG_MS, renew: false })));
  const leases = `hf:redisson-semaphore:mapped:{${name}}:leases`;
  const over = (await redis.zrange(leases, "0", "-1")).flatMap((owner) => [1, owner]);
  await redis.zadd(leases, "XX", ...over);
  // This acquire needs more than one batch.
  const many = await semaphore.tryAcquire({ permits: 250 });
  expect(many?.permits).toBe(250);
  expect(await semaphore.availablePermits()).toBe(200);
  expect((await semaphore.inspect()).holders).toMatchObject([{ permits: 250 }]);
  expect(await many?.release()).toBe("released");
});

test("a store that confirms grants gets an extend after each acquire", async () => {
  const name = randomUUID();
  const sent: string[] = [];
  const client = new Redis({ port: sides.server.port });
  const store = storeFor(client, {});
  const process = sides.processWith({
    store: {
      kind: store.kind,
      confirmsGrants: true,
      run(script, ...inputs) {
        if (script.name.startsWith("interop/")) sent.push(script.name.replace("interop/redisson/", ""));
        return store.run(script, ...inputs);
      },
      inbox: (...inputs) => store.inbox(...inputs),
      onReconnect: (listener) => store.onReconnect(listener),
      async close() {
        await store.close();
        client.disconnect();
      },
    },
  });
  for (const semaphore of [process.redisson.semaphore(name), process.redisson.permitExpirableSemaphore(`${name}2`)]) {
    await semaphore.trySetPermits(1);
    await (await semaphore.acquire()).release();
  }
  expect(sent.filter((script) => !script.endsWith("try-set-permits"))).toEqual([
    "semaphore/acquire",
    "semaphore/extend",
    "semaphore/release",
    "expirable-semaphore/acquire",
    "expirable-semaphore/extend",
    "expirable-semaphore/release",
  ]);
});

describe("a name used for something else", () => {
  const clear =
    /the key "[^"]+" is not a redisson\.[a-z.-]+: it (?:has another type|has a value that is not a count|belongs to)/;

  test("is refused by every verb if its key is a lock or holds text", async () => {
    const { redisson } = sides.process();
    for (const spoil of [(name: string) => redis.hset(name, "owner", 1), (name: string) => redis.set(name, "owner")]) {
      const name = randomUUID();
      await spoil(name);
      const [plain, permits] = [redisson.semaphore(name), redisson.permitExpirableSemaphore(name)];
      const latch = redisson.countDownLatch(name);
      for (const call of [
        () => plain.tryAcquire(),
        () => plain.acquire(),
        () => plain.trySetPermits(1),
        () => plain.addPermits(1),
        () => plain.release(),
        () => plain.drainPermits(),
        () => plain.availablePermits(),
        () => plain.inspect(),
        () => permits.tryAcquire(),
        () => permits.trySetPermits(1),
        () => permits.setPermits(1),
        () => permits.addPermits(1),
        () => permits.availablePermits(),
        () => permits.tryRelease("00".repeat(16)),
        () => permits.updateLeaseTime("00".repeat(16), 1_000),
        () => latch.trySetCount(1),
        () => latch.countDown(),
        () => latch.await(),
        () => latch.delete(),
      ]) {
        await expect(call()).rejects.toMatchObject({
          code: "ERR_LOCK_STORE",
          transient: false,
          cause: { message: expect.stringMatching(clear) },
        });
      }
      expect(await redis.keys(`*${name}*`)).toEqual([name]);
    }
  });

  test("is refused if the other kind of semaphore uses it", async () => {
    const { redisson } = sides.process();
    const mixed = { cause: { message: expect.stringMatching(clear) } };
    const first = randomUUID();
    await redisson.semaphore(first).trySetPermits(2);
    await redisson.semaphore(first).acquire();
    const permits = redisson.permitExpirableSemaphore(first);
    for (const call of [
      () => permits.tryAcquire(),
      () => permits.trySetPermits(1),
      () => permits.setPermits(1),
      () => permits.addPermits(1),
      () => permits.getPermits(),
    ]) {
      await expect(call()).rejects.toMatchObject(mixed);
    }
    expect(await redis.get(first)).toBe("1");

    const second = randomUUID();
    await sides.peer.call("permit.trySetPermits", { name: second, permits: 2 });
    await sides.peer.call("permit.tryAcquire", { name: second, leaseMs: LONG_MS });
    const plain = redisson.semaphore(second);
    for (const call of [
      () => plain.acquire(),
      () => plain.trySetPermits(1),
      () => plain.addPermits(1),
      () => plain.release(),
      () => plain.drainPermits(),
      () => plain.availablePermits(),
    ]) {
      await expect(call()).rejects.toMatchObject(mixed);
    }
    expect(await redis.get(second)).toBe("1");
  });
});
