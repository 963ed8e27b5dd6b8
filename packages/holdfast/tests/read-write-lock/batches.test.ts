/** Readers, a writer and more readers queue on a real server. Checks which are granted together, and by which call. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Monitor, startMonitor } from "../../../../tests/support/monitor.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { permitsRelease } from "../../src/generated/scripts.js";
import { createHoldfast, type Holdfast, type ReadWriteLease } from "../../src/index.js";
import { LONG_MS, until } from "../../src/testing/delays.js";

const READERS = 50;
const OPTIONS = { waitMs: 4 * LONG_MS, leaseMs: 4 * LONG_MS };

let server: RedisServer;
let monitor: Monitor;
let redis: Redis;
let holdfast: Holdfast;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis });
  // Load the scripts first, because a script that the server does not know yet is sent twice.
  await holdfast.readWriteLock(randomUUID()).write.run(() => {});
  monitor = await startMonitor(server);
});
afterAll(async () => {
  monitor.stop();
  await holdfast.close();
  redis.disconnect();
  await server.stop();
});

/** Number of releases sent to the server since the last call. */
async function releases(): Promise<number> {
  return (await monitor.sent()).filter(([command, sha]) => command === "evalsha" && sha === permitsRelease.sha1).length;
}

/** Whether one call made all grants. Their fencing tokens are then consecutive because a script sees a single time. */
function isOneBatch(leases: readonly ReadWriteLease[]): boolean {
  const tokens = leases.map(({ token }) => token);
  return tokens.every((token, i) => i === 0 || token === (tokens[i - 1] ?? 0) + 1);
}

test("50 readers, a writer and 50 readers are granted as two batches with the writer between", async () => {
  const lock = holdfast.readWriteLock(randomUUID());
  let granted = 0;
  const queue = async (side: "read" | "write", count: number): Promise<Promise<ReadWriteLease>[]> => {
    const waiting: Promise<ReadWriteLease>[] = [];
    const { waiterCount } = await lock.read.inspect();
    for (let i = 0; i < count; i += 1) {
      const lease = lock[side].acquire(OPTIONS);
      lease.then(
        () => {
          granted += 1;
        },
        () => {},
      );
      waiting.push(lease);
    }
    await until(async () => (await lock.read.inspect()).waiterCount === waiterCount + count, `${count} more to queue`);
    return waiting;
  };

  const blocker = await lock.write.acquire(OPTIONS);
  const first = await queue("read", READERS);
  const middle = await queue("write", 1);
  const last = await queue("read", READERS);
  await releases();

  await blocker.release();
  const readers = await Promise.all(first);
  expect(await releases(), "all readers of a batch are granted by one release").toBe(1);
  expect(isOneBatch(readers)).toBe(true);
  expect(granted, "and nobody beyond the writer").toBe(READERS);
  expect((await lock.read.inspect()).holders).toHaveLength(READERS);

  await Promise.all(readers.slice(1).map((lease) => lease.release()));
  expect(granted, "the writer waits for the last reader").toBe(READERS);
  await releases();
  await readers[0]?.release();
  const [writer] = await Promise.all(middle);
  expect(await releases()).toBe(1);
  expect(granted).toBe(READERS + 1);

  await writer?.release();
  const others = await Promise.all(last);
  expect(await releases(), "all readers of a batch are granted by one release").toBe(1);
  expect(isOneBatch(others)).toBe(true);
  expect(others[0]?.token).toBeGreaterThan(writer?.token ?? Infinity);
  await Promise.all(others.map((lease) => lease.release()));
  expect(await lock.read.inspect()).toMatchObject({ holders: [], waiterCount: 0 });
});

test("uncontended permits cost one script call to acquire and one to release", async () => {
  const locks = [holdfast.semaphore(randomUUID(), { permits: 10 }), holdfast.readWriteLock(randomUUID()).write];
  for (const lock of locks) await lock.run(() => {});
  await monitor.sent();
  for (const lock of locks) await lock.run(() => {});
  const sent = (await monitor.sent()).filter(([, , , key]) => locks.some(({ name }) => key?.includes(name)));
  expect(sent.map(([command]) => command)).toEqual(["evalsha", "evalsha", "evalsha", "evalsha"]);
});
