/** Redisson's fair lock: the queue that both sides share, and how long a dead waiter in it delays the others. */

import { redisson } from "@holdfast/interop/redisson";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { type Peer, startRedisson } from "./peer.js";
import { connect, type JavaClient } from "./redisson-peer.js";
import { javaSide, LONG_LEASE_MS, nodeSide, PATIENCE_MS, type Side, type SideHold } from "./sides.js";

/** The wait limit of the waiter that dies, which is about how long it can delay the others. */
const DEAD_WAIT_MS = 5_000;

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let java: Peer;
let client: JavaClient;
let count = 0;

beforeAll(async () => {
  java = startRedisson();
  server = await startRedis();
  redis = new Redis(server.url);
  holdfast = createHoldfast({ redis });
  client = await connect(java, { port: server.port });
});
afterAll(async () => {
  await holdfast.close();
  redis.disconnect();
  await java.stop();
  await server.stop();
});

const onJava = (of: JavaClient = client): Side => javaSide(of, (name) => ({ type: "fair", name }));
const onNode = (of: Holdfast = holdfast): Side => nodeSide(redis, (name) => redisson(of).fairLock(name));

function fresh(): string {
  count += 1;
  return `queued:${count}`;
}

const queueOf = (name: string): Promise<string[]> => redis.lrange(`redisson_lock_queue:{${name}}`, 0, -1);

function must<Value>(value: Value | null): Value {
  if (value === null) throw new Error("it was not granted");
  return value;
}

/** Starts a wait, and resolves when it is in the queue. */
async function enqueued(name: string, side: Side, waitMs = PATIENCE_MS): Promise<{ hold: Promise<SideHold | null> }> {
  const length = (await queueOf(name)).length;
  const hold = side.waitFor(name, waitMs, LONG_LEASE_MS);
  await expect.poll(async () => (await queueOf(name)).length, { timeout: PATIENCE_MS }).toBe(length + 1);
  return { hold };
}

test.each([
  ["Java", onJava],
  ["Node", onNode],
])("behind a holder of %s waiters of both sides are served in the order in which they came", async (_, holder) => {
  const name = fresh();
  const first = must(await holder().tryHold(name, LONG_LEASE_MS));
  const order: string[] = [];
  const served: Promise<void>[] = [];
  for (const [who, side] of [
    ["J1", onJava()],
    ["N1", onNode()],
    ["J2", onJava()],
    ["N2", onNode()],
    ["N3", onNode()],
    ["J3", onJava()],
  ] as const) {
    const { hold } = await enqueued(name, side);
    served.push(
      hold.then(async (granted) => {
        order.push(who);
        expect(await must(granted).release()).toBe(true);
      }),
    );
  }
  expect(await first.release()).toBe(true);
  await Promise.all(served);
  expect(order).toEqual(["J1", "N1", "J2", "N2", "N3", "J3"]);
  expect(await redis.exists(name, `redisson_lock_queue:{${name}}`, `redisson_lock_timeout:{${name}}`)).toBe(0);
});

test.each([
  ["Java", onJava, onNode],
  ["Node", onNode, onJava],
])("a newcomer does not pass a waiter of %s", async (_, waiter, newcomer) => {
  const name = fresh();
  const first = must(await onJava().tryHold(name, LONG_LEASE_MS));
  const { hold } = await enqueued(name, waiter());
  const released = first.release();
  // Another waiter is ahead of the newcomer before and after the release.
  expect(await newcomer().tryHold(name, LONG_LEASE_MS)).toBeNull();
  expect(await released).toBe(true);
  expect(await must(await hold).release()).toBe(true);
});

test.each([
  ["Java", onJava, onNode],
  ["Node", onNode, onJava],
])("a waiter of %s that gives up leaves its place, and those behind it lose nothing", async (_, impatient, behind) => {
  const name = fresh();
  const first = must(await onNode().tryHold(name, LONG_LEASE_MS));
  const { hold: vain } = await enqueued(name, impatient(), DEAD_WAIT_MS);
  const { hold } = await enqueued(name, behind());
  const [, patient = ""] = await queueOf(name);
  const deadlineMs = Number(await redis.zscore(`redisson_lock_timeout:{${name}}`, patient));
  expect(await vain).toBeNull();
  await expect.poll(() => queueOf(name)).toEqual([patient]);
  const score = Number(await redis.zscore(`redisson_lock_timeout:{${name}}`, patient));
  expect(score, "counted from the deadline of the one that left").toBe(deadlineMs - DEAD_WAIT_MS);
  expect(await first.release()).toBe(true);
  expect(await must(await hold).release()).toBe(true);
});

test("a dead waiter of Java delays Node only until its place expires", async () => {
  const name = fresh();
  const dying = await connect(java, { port: server.port });
  const first = must(await onNode().tryHold(name, DEAD_WAIT_MS));
  const { hold: never } = await enqueued(name, onJava(dying), DEAD_WAIT_MS);
  void never.catch(() => null);
  const [dead = ""] = await queueOf(name);
  const placeEndsAtMs = Number(await redis.zscore(`redisson_lock_timeout:{${name}}`, dead));
  await dying.crash();
  expect(await queueOf(name), "a client that is gone tells nobody").toEqual([dead]);
  const { hold } = await enqueued(name, onNode());
  expect(await first.release()).toBe(true);
  const next = must(await hold);
  await expectServed(placeEndsAtMs);
  expect(await next.release()).toBe(true);
});

test("a dead waiter of Node delays Java only until its place expires", async () => {
  const name = fresh();
  const dying = new Redis(server.url);
  const dead = createHoldfast({ redis: dying });
  const first = must(await onJava().tryHold(name, DEAD_WAIT_MS));
  const { hold: never } = await enqueued(name, onNode(dead), DEAD_WAIT_MS);
  void never.catch(() => null);
  const [owner = ""] = await queueOf(name);
  const placeEndsAtMs = Number(await redis.zscore(`redisson_lock_timeout:{${name}}`, owner));
  dying.disconnect();
  const { hold } = await enqueued(name, onJava());
  expect(await first.release()).toBe(true);
  const next = must(await hold);
  await expectServed(placeEndsAtMs);
  expect(await next.release()).toBe(true);
  await dead.close();
});

/**
 * Expects that the next waiter is served after the dead waiter's place has expired, and long before any other event
 * could serve it.
 */
async function expectServed(placeEndsAtMs: number): Promise<void> {
  const [seconds, micros] = await redis.time();
  const nowMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
  expect(nowMs).toBeGreaterThanOrEqual(placeEndsAtMs);
  expect(nowMs).toBeLessThan(placeEndsAtMs + PATIENCE_MS / 2);
}

test("a holder of Java is not notified when its lease ends, and the next holder of Node keeps the lock", async () => {
  const name = fresh();
  const late = must(await onJava().tryHold(name, 500));
  const next = must(await onNode().waitFor(name, PATIENCE_MS, LONG_LEASE_MS));
  expect(await late.release()).toBe(false);
  expect(await next.release()).toBe(true);
  expect(await late.release(), "where nobody has it, its unlock is said to have worked").toBe(true);
});
