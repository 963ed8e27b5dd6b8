/** Waiting for a lock shared with other systems: what wakes a waiter, how often it polls, and what it leaves behind. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { type KeyProtocol, keyProtocol } from "../../../interop/tests/key-lock.js";
import { Lease } from "../../src/core/lease.js";
import { ForeignLock } from "../../src/foreign-lock/foreign-lock.js";
import type { Pauses } from "../../src/foreign-lock/foreign-waiter.js";
import { AcquireTimeoutError, ClosedError, createHoldfast, type Holdfast, StoreError } from "../../src/index.js";
import { internalsOf } from "../../src/internals.js";

/** Longer than any test: a waiter that continues earlier was woken. */
const NEVER_MS = 600_000;
/** Shorter than the periodic re-check interval of every waiter. */
const BEFORE_RECHECK_MS = 4_500;
const RARELY: Pauses = { delayMs: NEVER_MS, jitterMs: 0 };
const OFTEN: Pauses = { delayMs: 20, jitterMs: 15 };

let server: RedisServer;
let redis: Redis;
let client: Redis;
let holdfast: Holdfast;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  client = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis: client });
});

afterAll(async () => {
  await holdfast?.close();
  redis?.disconnect();
  client?.disconnect();
  await server?.stop();
});

interface Made {
  readonly lock: ForeignLock;
  readonly protocol: KeyProtocol;
}

function make(
  pauses: Pauses,
  { hears = true, inLine = true, attempts = Infinity, on = holdfast, key = randomUUID() as string } = {},
): Made {
  const { session, defaults } = internalsOf(on, key);
  const protocol = keyProtocol(redis, key);
  const lock = new ForeignLock({
    session,
    protocol,
    defaults,
    make: (held) => new Lease(held),
    pauses,
    attempts,
    line: inLine ? key : undefined,
    listen: hears ? (_claim, onNews) => session.store.inbox(protocol.channel, onNews, 2_000) : undefined,
  });
  return { lock, protocol };
}

const subscribers = async (channel: string): Promise<number> => Number((await redis.pubsub("NUMSUB", channel))[1]);

test("a message wakes a waiter, however long its pauses are", async () => {
  const { lock, protocol } = make(RARELY);
  await redis.set(lock.name, "them", "PX", NEVER_MS);
  const waiting = lock.acquire({ waitMs: BEFORE_RECHECK_MS });
  await vi.waitFor(async () => expect(await subscribers(protocol.channel)).toBe(1));
  await redis.del(lock.name);
  await redis.publish(protocol.channel, "free");
  const lease = await waiting;
  expect(await redis.get(lock.name)).toBe(lease.owner);
  expect(await lease.release()).toBe("released");
});

test("a waiter notices a release between its refusal and its subscription", async () => {
  const { lock, protocol } = make(RARELY);
  await redis.set(lock.name, "them", "PX", NEVER_MS);
  const { acquire } = protocol;
  Object.assign(protocol, {
    acquire: async (...args: Parameters<KeyProtocol["acquire"]>) => {
      const answer = await acquire(...args);
      // Release immediately after the first refusal, without a message.
      if (protocol.asked() === 1) await redis.del(lock.name);
      return answer;
    },
  });
  const lease = await lock.acquire({ waitMs: BEFORE_RECHECK_MS });
  expect(protocol.asked()).toBe(2);
  await lease.release();
});

test("without messages, a waiter polls repeatedly and at the end of the current lease", async () => {
  const often = make(OFTEN, { hears: false });
  await redis.set(often.lock.name, "them");
  const waiting = often.lock.acquire({ waitMs: NEVER_MS });
  await vi.waitFor(() => expect(often.protocol.asked()).toBeGreaterThan(2));
  await redis.del(often.lock.name);
  await (await waiting).release();

  const rarely = make(RARELY, { hears: false });
  await redis.set(rarely.lock.name, "them", "PX", 50);
  await (await rarely.lock.acquire({ waitMs: BEFORE_RECHECK_MS })).release();
});

test("waiters of one process poll as one and are served in order of arrival", async () => {
  const { lock, protocol } = make(RARELY);
  const first = await lock.acquire();
  const served: number[] = [];
  const crowd = Array.from({ length: 10 }, async (_, place) => {
    const lease = await lock.acquire({ waitMs: NEVER_MS });
    served.push(place);
    await lease.release();
  });
  await vi.waitFor(async () => expect(await subscribers(protocol.channel)).toBe(1));
  expect(protocol.asked()).toBeLessThanOrEqual(3);
  await first.release();
  await Promise.all(crowd);
  expect(served).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("without a local queue, each waiter polls for itself", async () => {
  const { lock, protocol } = make(RARELY, { inLine: false });
  const first = await lock.acquire();
  const crowd = [1, 2, 3].map(() => lock.acquire({ waitMs: NEVER_MS }).then((lease) => lease.release()));
  await vi.waitFor(() => expect(protocol.asked()).toBeGreaterThanOrEqual(4));
  await first.release();
  await Promise.all(crowd);
});

test("a waiter stops after its last attempt and reports the holder", async () => {
  const { lock, protocol } = make(OFTEN, { attempts: 3, hears: false });
  await redis.set(lock.name, "them");
  const error: unknown = await lock.acquire({ waitMs: NEVER_MS }).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(AcquireTimeoutError);
  expect((error as AcquireTimeoutError).holder?.owner).toBe("them");
  expect(protocol.asked()).toBe(3);
});

test("tryAcquire sends one request, even if others wait in the local queue", async () => {
  const { lock, protocol } = make(RARELY);
  const held = await lock.acquire();
  const abort = new AbortController();
  const waiting = lock.acquire({ waitMs: NEVER_MS, signal: abort.signal });
  await vi.waitFor(async () => expect(await subscribers(protocol.channel)).toBe(1));
  await vi.waitFor(() => expect(protocol.asked()).toBe(3));
  expect(await lock.tryAcquire()).toBeNull();
  expect(protocol.asked()).toBe(4);
  abort.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await held.release();
});

test.each([true, false])(
  "the deadline or an abort ends a wait and leaves nothing behind (first in the queue: %s)",
  async (isInFront) => {
    const { lock } = make(RARELY);
    await redis.set(lock.name, "them");
    const abort = new AbortController();
    const front = new AbortController();
    const others = isInFront ? [] : [lock.acquire({ waitMs: Infinity, signal: front.signal })];
    await expect(lock.acquire({ waitMs: 20 })).rejects.toMatchObject({ holder: { owner: "them" } });
    const aborted = lock.acquire({ waitMs: Infinity, signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    front.abort(new Error("enough"));
    await Promise.allSettled(others);
    await redis.del(lock.name);
    await (await lock.acquire()).release();
    expect(await redis.exists(lock.name)).toBe(0);
  },
);

test("close ends all queued waits and closes the subscriber connection", async () => {
  const own = new Redis({ port: server.port });
  const closing = createHoldfast({ redis: own });
  const { lock, protocol } = make(RARELY, { on: closing });
  await redis.set(lock.name, "them");
  const waits = [1, 2, 3].map(() => lock.acquire({ waitMs: Infinity }).catch((error: unknown) => error));
  await vi.waitFor(async () => expect(await subscribers(protocol.channel)).toBe(1));
  await closing.close();
  for (const end of await Promise.all(waits)) expect(end).toBeInstanceOf(ClosedError);
  await vi.waitFor(async () => expect(await subscribers(protocol.channel)).toBe(0));
  own.disconnect();
});

test("an attempt whose reply was lost is retried under the same owner", async () => {
  const { lock, protocol } = make(OFTEN);
  const { acquire } = protocol;
  const owners = new Set<string>();
  Object.assign(protocol, {
    acquire: async (...args: Parameters<KeyProtocol["acquire"]>) => {
      owners.add(args[0].owner);
      const answer = await acquire(...args);
      if (protocol.asked() === 1) throw new StoreError("key", { mayHaveRun: true, transient: true, cause: "lost" });
      return answer;
    },
  });
  const lease = await lock.acquire();
  expect([...owners]).toEqual([lease.owner]);
  await lease.release();
  expect(await redis.exists(lock.name)).toBe(0);
});

test.each([2, 3])(
  "%i callers that share a signal all end when it aborts, and none is granted the lock later",
  async (callers) => {
    const { lock } = make(OFTEN);
    const holder = await lock.acquire();
    const controller = new AbortController();
    const ends: unknown[] = [];
    const waiting = Array.from({ length: callers }, () =>
      lock.acquire({ waitMs: NEVER_MS, signal: controller.signal }).then(
        (lease) => ends.push(lease),
        (error: unknown) => ends.push(error),
      ),
    );
    await vi.waitFor(async () => expect((await lock.inspect()).holders).toHaveLength(1));
    controller.abort("enough");
    await Promise.all(waiting);
    expect(ends).toEqual(Array.from({ length: callers }, () => "enough"));
    await holder.release();
    expect(await redis.exists(lock.name)).toBe(0);
  },
);

test("a request caused by a message does not count as an attempt", async () => {
  const { lock, protocol } = make({ delayMs: 5_000, jitterMs: 0 }, { attempts: 2 });
  const holder = await lock.acquire();
  const waiting = lock.acquire({ waitMs: NEVER_MS });
  waiting.catch(() => {});
  await vi.waitFor(async () => expect(await subscribers(protocol.channel)).toBe(1), { timeout: 10_000 });
  for (let message = 1; message <= 4; message += 1) {
    const before = protocol.asked();
    await redis.publish(protocol.channel, "news");
    await vi.waitFor(() => expect(protocol.asked()).toBeGreaterThan(before), { timeout: 10_000 });
  }
  await holder.release();
  await redis.publish(protocol.channel, "news");
  expect(await (await waiting).release()).toBe("released");
});

test("a waiter that runs out of attempts does not report its time limit as the time waited", async () => {
  const { lock } = make({ delayMs: 300, jitterMs: 0 }, { attempts: 2 });
  const holder = await lock.acquire();
  const beganMs = performance.now();
  const error = await lock.acquire({ waitMs: NEVER_MS }).catch((reason: unknown) => reason);
  expect(performance.now() - beganMs).toBeGreaterThan(250);
  expect(error).toBeInstanceOf(AcquireTimeoutError);
  expect(String(error)).not.toContain(`${NEVER_MS}`);
  await holder.release();
});

test("without a reply to its cleanup, a waiter that ran out of attempts does not report its time limit either", async () => {
  const { lock, protocol } = make({ delayMs: 100, jitterMs: 0 }, { attempts: 2, hears: false });
  const noReply = new StoreError(lock.name, { mayHaveRun: true, transient: true, cause: "no reply" });
  const { acquire } = protocol;
  const replies = [() => Promise.reject(noReply)];
  Object.assign(protocol, {
    acquire: (...args: Parameters<KeyProtocol["acquire"]>) => replies.pop()?.() ?? acquire(...args),
    leave: () => Promise.reject(noReply),
  });
  await redis.set(lock.name, "them");
  const error = await lock.acquire({ waitMs: Infinity }).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StoreError);
  expect(String(error)).toMatch(/the wait of \d+ ms ended before the server replied/);
});
