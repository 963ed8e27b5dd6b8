/** Redisson's exclusive locks, shared by Node and Java. Each test runs in both directions. */

import { type Redisson, redisson } from "@holdfast/interop/redisson";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { CONTENTION_MS, expectNoLostUpdate, IS_LONG_RUN, tell, WAKES } from "./contention.js";
import { type Peer, REDISSONS, startRedisson } from "./peer.js";
import { connect, type JavaClient, type JavaLock } from "./redisson-peer.js";
import {
  inVain,
  javaSide,
  LONG_LEASE_MS,
  type NodeLock,
  nodeSide,
  PATIENCE_MS,
  type Side,
  WATCHDOG_MS,
} from "./sides.js";

/** Long enough for the steps before the lease ends, short enough to wait for its end. */
const SHORT_LEASE_MS = 1_000;
/** Longer than that, and than a watchdog's lease. */
const CALL_AGAIN_MS = 10_000;
/** The duration of a wait that must fail. */
const VAIN_WAIT_MS = 300;
/** A Node waiter does not poll before this time, so a faster one was woken by a message. */
const WOKEN_MS = 4_000;

type Kind = NonNullable<JavaLock["type"]> | "multi";

const KINDS: readonly (readonly [Kind, (of: Redisson, name: string) => NodeLock])[] = [
  ["lock", (of, name) => of.lock(name)],
  ["fenced", (of, name) => of.fencedLock(name)],
  ["spin", (of, name) => of.spinLock(name)],
  ["fair", (of, name) => of.fairLock(name)],
  ["write", (of, name) => of.readWriteLock(name).write],
  ["multi", (of, name) => of.multiLock([`${name}:a`, `${name}:b`])],
];

let count = 0;

function fresh(): string {
  count += 1;
  // No name is a prefix of another, because leftover keys are searched by name while other tests run.
  return `shared:${count}.`;
}

function must<Value>(value: Value | null): Value {
  if (value === null) throw new Error("it was not granted");
  return value;
}

describe.each(REDISSONS)("Redisson %s", (version) => {
  let server: RedisServer;
  let redis: Redis;
  let holdfast: Holdfast;
  let java: Peer;
  let client: JavaClient;

  beforeAll(async () => {
    java = startRedisson(version);
    server = await startRedis();
    redis = new Redis(server.url);
    holdfast = createHoldfast({ redis });
    client = await connect(java, { port: server.port, watchdogMs: WATCHDOG_MS });
  });
  afterAll(async () => {
    await holdfast.close();
    redis.disconnect();
    await java.stop();
    await server.stop();
  });

  function onJava(kind: Kind, of: JavaClient = client): Side {
    return javaSide(of, (name) =>
      kind === "multi" ? { type: kind, names: [`${name}:a`, `${name}:b`] } : { type: kind, name },
    );
  }

  function onNode(lockOf: (of: Redisson, name: string) => NodeLock, of: Holdfast = holdfast): Side {
    return nodeSide(redis, (name) => lockOf(redisson(of), name));
  }

  async function leftOver(name: string): Promise<string[]> {
    // Ignores unlock latches: they are deleted in the background and carry no information.
    return (await redis.keys(`*${name}*`)).filter(
      (key) => !key.includes("redisson_unlock_latch") && !key.includes("redisson_lock_token"),
    );
  }

  // Most of the time is spent waiting for leases to end, so several tests run concurrently.
  /** Does not use `expect.poll`, which cannot find its test after concurrent tests have ended. */
  async function expectLeft(name: string, keys: readonly string[]): Promise<void> {
    await vi.waitFor(async () => expect(await leftOver(name)).toEqual(keys), 60_000);
  }

  describe.concurrent.each(KINDS)("%s", (kind, lockOf) => {
    const ways = [
      ["held by Java, wanted by Node", () => [onJava(kind), onNode(lockOf)] as const],
      ["held by Node, wanted by Java", () => [onNode(lockOf), onJava(kind)] as const],
    ] as const;

    /**
     * Waits for a lock that ends by the expiry of its lease, without a release.
     *
     * Before 3.31, a fair waiter that asks again in the last millisecond gets a negative time and then sleeps for its
     * whole wait limit, so the test calls it again.
     */
    async function afterItsEnd(side: Side, name: string): ReturnType<Side["waitFor"]> {
      const mayOversleep = kind === "fair" && version !== REDISSONS[0];
      for (let leftMs = PATIENCE_MS; leftMs > 0; leftMs -= CALL_AGAIN_MS) {
        const hold = await side.waitFor(name, mayOversleep ? CALL_AGAIN_MS : PATIENCE_MS, LONG_LEASE_MS);
        if (hold !== null || !mayOversleep) return hold;
      }
      return null;
    }

    describe.each(ways)("%s", (way, sides) => {
      test("is refused, also after a wait, and the waiter leaves nothing behind", async () => {
        const [x, y] = sides();
        const name = fresh();
        const hold = must(await x.tryHold(name, LONG_LEASE_MS));
        const before = await leftOver(name);
        expect(await y.tryHold(name)).toBeNull();
        expect(await inVain(() => y.waitFor(name, VAIN_WAIT_MS))).toBeNull();
        await expectLeft(name, before);
        expect(await hold.release()).toBe(true);
        const next = must(await y.tryHold(name));
        expect(await next.release()).toBe(true);
        await expectLeft(name, []);
      });

      test("wakes a waiter, long before its lease would end", { timeout: WAKES * 500 + 110_000 }, async () => {
        const [x, y] = sides();
        const name = fresh();
        let late = 0;
        let longestMs = 0;
        for (let wake = 0; wake < WAKES; wake += 1) {
          const hold = must(await x.tryHold(name, LONG_LEASE_MS));
          const waiting = y.waitFor(name, PATIENCE_MS, LONG_LEASE_MS);
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 40));
          const releasedAtMs = performance.now();
          expect(await hold.release()).toBe(true);
          const next = must(await waiting);
          const tookMs = performance.now() - releasedAtMs;
          longestMs = Math.max(longestMs, tookMs);
          if (tookMs >= WOKEN_MS) late += 1;
          expect(await next.release()).toBe(true);
        }
        tell(
          `Redisson ${version}, ${kind}, ${way}`,
          `${WAKES} wake-ups, longest ${Math.round(longestMs)} ms, ${late} late`,
        );
        // Tolerates one late wake, which a stalled machine can cause.
        expect(late).toBeLessThanOrEqual(1);
      });

      test("is renewed for longer than a lease, and not after its release", async () => {
        const [x, y] = sides();
        const name = fresh();
        const hold = must(await x.tryHold(name));
        expect(await inVain(() => y.waitFor(name, WATCHDOG_MS + 1_000))).toBeNull();
        expect(await hold.release()).toBe(true);
        const next = must(await y.waitFor(name, PATIENCE_MS, LONG_LEASE_MS));
        const leftMs = await redis.pttl(kind === "multi" ? `${name}:a` : name);
        expect(leftMs).toBeGreaterThan(WATCHDOG_MS);
        expect(await next.release()).toBe(true);
      });

      test("ends with its lease, and later calls of its holder have no effect", async () => {
        const [x, y] = sides();
        const name = fresh();
        const hold = must(await x.tryHold(name, SHORT_LEASE_MS));
        const next = must(await afterItsEnd(y, name));
        expect(await hold.release()).toBe(false);
        expect(await x.tryHold(name)).toBeNull();
        expect(await next.release()).toBe(true);
      });
    });

    test("Node gets the lock of a dead Java service when its lease is over, not before", async () => {
      const name = fresh();
      const dying = await connect(java, { port: server.port, watchdogMs: WATCHDOG_MS });
      must(await onJava(kind, dying).tryHold(name));
      await dying.crash();
      const node = onNode(lockOf);
      expect(await node.tryHold(name)).toBeNull();
      const next = must(await node.waitFor(name, PATIENCE_MS));
      expect(await next.release()).toBe(true);
    });

    test("Java gets the lock of a dead Node service when its lease is over, not before", async () => {
      const name = fresh();
      const dying = new Redis(server.url);
      const dead = createHoldfast({ redis: dying });
      must(await onNode(lockOf, dead).tryHold(name));
      dying.disconnect();
      const other = onJava(kind);
      expect(await other.tryHold(name)).toBeNull();
      const next = must(await afterItsEnd(other, name));
      expect(await next.release()).toBe(true);
      await dead.close();
    });

    // All releases use the same format. The older ones are covered by the tests above, and contend only in long runs.
    if (version !== REDISSONS[0] && !IS_LONG_RUN) return;
    test("a counter that only the lock protects loses no update, with both sides at random", {
      timeout: CONTENTION_MS + 60_000,
    }, async () => {
      const name = fresh();
      const other = await connect(java, { port: server.port });
      const contend = (side: Side) => (counter: string) => side.contend(name, counter);
      const contenders = {
        Node: contend(onNode(lockOf)),
        "Node again": contend(onNode(lockOf)),
        Java: contend(onJava(kind)),
        "another Java": contend(onJava(kind, other)),
      };
      await expectNoLostUpdate(redis, contenders, PATIENCE_MS, `Redisson ${version}, ${kind}`);
    });
  });

  // A multi-lock in Java has no forceUnlock, and its members are plain locks.
  describe.concurrent.each(KINDS.filter(([kind]) => kind !== "multi"))("%s", (kind, lockOf) => {
    test.each([
      ["Java", "Node", () => [onJava(kind), onNode(lockOf)] as const],
      ["Node", "Java", () => [onNode(lockOf), onJava(kind)] as const],
    ])("what %s holds can be ended by %s: waiters come in, and the holder finds out", async (_x, _y, sides) => {
      const [x, y] = sides();
      const name = fresh();
      const hold = must(await x.tryHold(name, LONG_LEASE_MS));
      const waiting = [x.waitFor(name, PATIENCE_MS, LONG_LEASE_MS), y.waitFor(name, PATIENCE_MS, LONG_LEASE_MS)];
      expect(await y.force(name)).toBe(true);
      const first = must(await Promise.race(waiting));
      expect(await hold.release()).toBe(false);
      expect(await first.release()).toBe(true);
      for (const each of await Promise.all(waiting)) if (each !== first) await must(each).release();
    });
  });
});
