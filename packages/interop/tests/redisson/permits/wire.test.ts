/** Redisson's semaphores and latches on every client, the embedded store and clusters, and with mapped names. */
import { randomUUID } from "node:crypto";
import { embedded, Keyspace } from "@holdfast/embedded";
import { GlideClient } from "@valkey/valkey-glide";
import { createHoldfast, type HoldfastOptions, LeaseLostError, type Store, UnsupportedError } from "holdfast";
import { Redis } from "ioredis";
import { Redis as Iovalkey } from "iovalkey";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { redisson } from "../../../src/redisson/index.js";
import { JavaModel } from "./java-model.js";
import { BY_MESSAGE, untilHeard } from "./peer.js";
import { type OpenSides, openSides } from "./two-sides.js";

const LONG_MS = 600_000;

let sides: OpenSides;
beforeAll(async () => {
  sides = await openSides();
});
afterEach(() => sides.end());
afterAll(() => sides?.stop());

type Client = () => Promise<{ readonly options: HoldfastOptions; close(): unknown }>;
const clients: readonly (readonly [string, Client])[] = [
  [
    "ioredis",
    async () => {
      const client = new Redis({ port: sides.server.port });
      return { options: { redis: client }, close: () => client.disconnect() };
    },
  ],
  [
    "iovalkey",
    async () => {
      const client = new Iovalkey({ port: sides.server.port });
      return { options: { redis: client }, close: () => client.disconnect() };
    },
  ],
  [
    "node-redis",
    async () => {
      const client = createClient({ url: sides.server.url });
      await client.connect();
      return { options: { redis: client }, close: () => client.destroy() };
    },
  ],
  [
    "GLIDE",
    async () => {
      const make = (): Promise<GlideClient> =>
        GlideClient.createClient({ addresses: [{ host: "127.0.0.1", port: sides.server.port }] });
      const client = await make();
      return { options: { redis: client, subscriber: make }, close: () => client.close() };
    },
  ],
];

test.each(clients)(
  "permits are stored as the bytes of their ids and released by id, through %s",
  async (_, connect) => {
    const { options, close } = await connect();
    const holdfast = createHoldfast(options);
    const name = randomUUID();
    const semaphore = redisson(holdfast).permitExpirableSemaphore(name, BY_MESSAGE);
    await semaphore.trySetPermits(3);
    const lease = await semaphore.acquire({ permits: 3 });
    const members = await sides.redis.zrangeBuffer(`{${name}}:timeout`, "0", "-1");
    expect(members.map((member) => member.toString("hex")).sort()).toEqual([...lease.permitIds].sort());
    expect(members.every(({ length }) => length === 16)).toBe(true);
    expect((await semaphore.inspect()).holders.map(({ owner }) => owner).sort()).toEqual([...lease.permitIds].sort());
    const waiting = semaphore.acquire();
    await untilHeard(sides, `redisson_sc:{${name}}`, 1);
    const theirs = await Promise.all(
      lease.permitIds.map((permitId) => sides.peer.call("permit.tryRelease", { name, permitId })),
    );
    expect(theirs).toEqual([true, true, true]);
    await (await waiting).release();
    await holdfast.close();
    await close();
  },
);

test("the embedded store supports semaphores and latches, byte for byte", async () => {
  const keyspace = new Keyspace();
  const holdfast = createHoldfast({ store: embedded({ keyspace }) });
  const { semaphore, permitExpirableSemaphore, countDownLatch } = redisson(holdfast);
  const plain = semaphore("s", BY_MESSAGE);
  expect(await plain.trySetPermits(2, { ttlMs: LONG_MS })).toBe(true);
  const first = await plain.acquire({ permits: 2 });
  const waiting = plain.acquire();
  await first.release();
  await (await waiting).release();
  await plain.addPermits(-1);
  expect(await plain.drainPermits()).toBe(1);
  expect(await plain.drainPermits()).toBe(0);

  const permits = permitExpirableSemaphore("p", BY_MESSAGE);
  await permits.trySetPermits(4);
  const lease = await permits.acquire({ permits: 4, leaseMs: LONG_MS });
  const members = await keyspace.eval(
    `local hex = {}
    for i, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
      hex[i] = string.gsub(id, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
    end
    return hex`,
    ["{p}:timeout"],
    [],
  );
  expect([...(members as string[])].sort()).toEqual([...lease.permitIds].sort());
  const [one = "", two = "", ...rest] = lease.permitIds;
  expect(await permits.updateLeaseTime(one, Infinity)).toBe(true);
  expect(await permits.getLeaseTime(one)).toBe(Infinity);
  expect(await permits.tryRelease(two)).toBe("released");
  expect(await permits.tryReleaseAll(rest)).toBe(true);
  expect((await permits.inspect()).holders).toMatchObject([{ owner: one, leaseLeftMs: Infinity }]);
  expect(await permits.getPermits()).toBe(4);
  await permits.setPermits(6);
  expect(await permits.availablePermits()).toBe(5);
  await expect(lease.release()).rejects.toThrow(LeaseLostError);

  const latch = countDownLatch("l", BY_MESSAGE);
  await latch.trySetCount(2);
  const awaited = latch.await();
  expect(await latch.countDown()).toBe(1);
  expect(await latch.countDown()).toBe(0);
  await awaited;
  expect(await latch.delete()).toBe(false);
  await holdfast.close();
});

test("a count is published with both commands if publish is `both`", async () => {
  const name = randomUUID();
  const channel = `redisson_sc:{${name}}`;
  const subscriber = new Redis({ port: sides.server.port });
  const heard: string[] = [];
  subscriber.on("smessage", (of: string, message: string) => heard.push(`sharded ${of} ${message}`));
  subscriber.on("message", (of: string, message: string) => heard.push(`plain ${of} ${message}`));
  await subscriber.ssubscribe(channel, `redisson_countdownlatch__channel__{${name}}`);
  await subscriber.subscribe(channel, `redisson_countdownlatch__channel__{${name}}`);
  const both = sides.processWith({}, { publish: "both" }).redisson;
  await both.semaphore(name).trySetPermits(3);
  await sides.redis.del(name);
  const latch = both.countDownLatch(name);
  await latch.trySetCount(1);
  await latch.countDown();
  await subscriber.ping();
  const ofLatch = `redisson_countdownlatch__channel__{${name}}`;
  expect(heard).toEqual([
    `plain ${channel} 3`,
    `sharded ${channel} 3`,
    `plain ${ofLatch} 1`,
    `sharded ${ofLatch} 1`,
    `plain ${ofLatch} 0`,
    `sharded ${ofLatch} 0`,
  ]);
  subscriber.disconnect();
});

test("a mapped name is the name that Java uses, and a client with a keyPrefix is refused", async () => {
  const id = randomUUID();
  const name = `app:${id}`;
  const mapped = sides.processWith({}, { nameMapper: (given) => `app:${given}` }).redisson;
  const permits = mapped.permitExpirableSemaphore(id, BY_MESSAGE);
  expect(permits.name).toBe(id);
  await permits.trySetPermits(1);
  const permitId = await sides.peer.call<string>("permit.tryAcquire", { name, leaseMs: LONG_MS });
  const waiting = permits.acquire();
  await untilHeard(sides, `redisson_sc:{${name}}`, 1);
  await sides.peer.call("permit.release", { name, permitId });
  const lease = await waiting;
  expect(await sides.redis.zcard(`{${name}}:timeout`)).toBe(1);
  expect(await lease.release()).toBe("released");

  const client = new Redis({ port: sides.server.port, keyPrefix: "app:" });
  const { redisson: prefixed, holdfast } = sides.processWith({ redis: client });
  for (const call of [
    () => prefixed.semaphore(id).acquire(),
    () => prefixed.semaphore(id).trySetPermits(1),
    () => prefixed.permitExpirableSemaphore(id).tryAcquire(),
    () => prefixed.countDownLatch(id).trySetCount(1),
    () => prefixed.countDownLatch(id).await(),
  ]) {
    await expect(call()).rejects.toThrow(UnsupportedError);
  }
  await holdfast.close();
  client.disconnect();
});

test("a cluster refuses a name whose keys or channel are in another slot", async () => {
  const inner = embedded();
  const store: Store = {
    kind: "cluster",
    run: (...inputs) => inner.run(...inputs),
    inbox: (...inputs) => inner.inbox(...inputs),
    shardInbox: (...inputs) => inner.inbox(...inputs),
    onReconnect: (listener) => inner.onReconnect(listener),
    close: () => inner.close(),
  };
  const holdfast = createHoldfast({ store });
  const { semaphore, permitExpirableSemaphore, countDownLatch } = redisson(holdfast);
  for (const name of ["{t}x", "order:{42}", "a}b", "a{}b"]) expect(() => countDownLatch(name)).toThrow(RangeError);
  for (const name of ["a}b", "a{}b", "a{b"]) {
    expect(() => semaphore(name)).toThrow(RangeError);
    expect(() => permitExpirableSemaphore(name)).toThrow(RangeError);
  }
  // A waiter that subscribes to the plain and the sharded channel needs only one message.
  const permits = semaphore("{t}x", BY_MESSAGE);
  await permits.trySetPermits(1);
  const lease = await permits.acquire();
  const waiting = permits.acquire();
  await lease.release();
  await (await waiting).release();
  countDownLatch("plain");
  await holdfast.close();
});

test("a waiter is woken after a script flush and the loss of its subscriber connection", async () => {
  const name = randomUUID();
  const semaphore = sides.process().redisson.semaphore(name, BY_MESSAGE);
  const other = sides.process().redisson.semaphore(name);
  await other.trySetPermits(1);
  const lease = await other.acquire();
  const waiting = semaphore.acquire({ waitMs: 20_000 });
  await untilHeard(sides, `redisson_sc:{${name}}`, 1);
  await sides.redis.script("FLUSH");
  await sides.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await lease.release();
  await (await waiting).release();
});

test("a Java service whose clock is ahead reclaims a permit too early, and its holder is notified", async () => {
  const name = randomUUID();
  const ahead = new JavaModel(sides.redis, 60_000);
  const semaphore = sides.process().redisson.permitExpirableSemaphore(name);
  await semaphore.trySetPermits(1);
  const lease = await semaphore.acquire({ leaseMs: 10_000 });
  const permitId = await ahead.call<string>("permit.tryAcquire", { name, leaseMs: LONG_MS });
  expect(permitId).toMatch(/^[\da-f]{32}$/);
  while (!lease.signal.aborted) await new Promise((go) => setTimeout(go, 10));
  expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
  await expect(lease.release()).rejects.toThrow(LeaseLostError);
  expect(await semaphore.acquiredPermits()).toBe(1);
  await ahead.call("permit.release", { name, permitId });
  ahead.close();
});

test("invalid arguments are refused before anything is sent", async () => {
  const { redisson: made } = sides.process();
  const name = randomUUID();
  const plain = made.semaphore(name);
  const permits = made.permitExpirableSemaphore(name);
  const latch = made.countDownLatch(name);
  for (const [call, message] of [
    [() => plain.acquire({ permits: 0 }), "permits must be a whole number from 1 to 2147483647; got 0"],
    [() => plain.tryAcquire({ permits: 1.5 }), "permits must be"],
    [() => plain.acquire({ permits: 1, wait: 3 } as object), "there is no option"],
    [() => plain.release(0), "permits must be"],
    [() => plain.trySetPermits(-1), "permits must be"],
    [() => plain.trySetPermits(1, { ttlMs: 0 }), "ttlMs must be"],
    [() => plain.addPermits(2 ** 31), "permits must be"],
    [() => permits.acquire({ permits: 1_001 }), "permits must be a whole number from 1 to 1000"],
    [() => permits.tryRelease("xy"), "a permit id must be 32 hexadecimal digits"],
    [() => permits.tryReleaseAll([]), "the number of ids must be"],
    [() => permits.tryReleaseAll(["00".repeat(16), "00".repeat(16)]), "ids must not contain the same permit twice"],
    [() => permits.updateLeaseTime("00".repeat(16), -1), "leaseMs must be"],
    [() => latch.trySetCount(0), "count must be"],
    [() => latch.await({ leaseMs: 5_000 } as object), "there is no option"],
  ] as const) {
    await expect(call()).rejects.toThrow(message);
  }
  expect(() => made.semaphore(name, { recheckMs: 1 })).toThrow("recheckMs must be a whole number from 10 to 60000");
  expect(() => made.countDownLatch(name, { recheck: 1 } as object)).toThrow("there is no option");
  expect(await sides.redis.keys(`*${name}*`)).toEqual([]);
});
