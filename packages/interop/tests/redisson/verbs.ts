/**
 * Declares tests for each verb of the checklist, for any pair of sides that share a Redisson lock. Each test checks all
 * lock types concurrently because it mostly waits.
 */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { withLeaseInTime } from "../../../holdfast/src/testing/delays.js";
import { type Held, LOCK_TYPES, type Locked, type LockType, type Maker, type Side } from "./side.js";

/** Long enough to be renewed in time on a busy machine. */
const WATCHDOG_MS = 1_500;
const LONG_MS = 60_000;
/** Shorter than the periodic re-check interval of Holdfast: a waiter served within it was woken by a message. */
const WOKEN_MS = 3_500;
const PATIENT_MS = 15_000;

/** How a pair of sides is tested. */
export interface VerbOptions {
  readonly types?: readonly LockType[];
  /** Makes a lock name from a unique string. */
  readonly name?: (text: string) => string;
  /** Prefix of every name. */
  readonly prefix?: string;
  readonly watchdogMs?: number;
  /** Length of a lease that ends during the test. It must leave the contender time for two requests. */
  readonly shortLeaseMs?: number;
}

/** Lock types that cannot be acquired while `type` is held. */
function contenders(type: LockType): readonly LockType[] {
  if (type === "read") return ["write"];
  return type === "write" ? ["read", "write"] : [type];
}

/** Checks all items concurrently. The error message of a failure begins with the item. */
async function each<Item extends string>(items: readonly Item[], check: (item: Item) => Promise<void>): Promise<void> {
  const ends = await Promise.allSettled(items.map(check));
  ends.forEach((end, i) => {
    if (end.status === "fulfilled") return;
    if (end.reason instanceof Error) end.reason.message = `${items[i]}: ${end.reason.message}`;
    throw end.reason;
  });
}

/** @param port  returns the port of the server once it runs */
export function checkVerbs(x: Maker, y: Maker, port: () => number, options: VerbOptions = {}): void {
  const {
    types = LOCK_TYPES,
    name = (text) => text,
    prefix = "",
    watchdogMs = WATCHDOG_MS,
    shortLeaseMs = 300,
  } = options;
  // Cases that run late on a busy machine are repeated with a longer lease.
  vi.setConfig({ testTimeout: 120_000 });
  describe.concurrent(`${x.label} holds, ${y.label} contends`, () => {
    let redis: Redis;
    let holder: Side;
    let other: Side;
    const made: Side[] = [];
    const make = async (maker: Maker, renewedMs = watchdogMs): Promise<Side> => {
      const side = await maker.make({ port: port(), watchdogMs: renewedMs, prefix });
      made.push(side);
      return side;
    };

    beforeAll(async () => {
      redis = new Redis({ port: port() });
      holder = await make(x);
      other = await make(y);
    });
    afterAll(async () => {
      await Promise.all(made.map((side) => side.close()));
      redis.disconnect();
    });

    const fresh = (type: LockType): Locked => ({ type, name: name(randomUUID()) });
    const keyOf = (what: Locked): string => prefix + what.name;
    /** Pattern for the keys and channels of a lock. Braces become `?`. */
    const about = (what: Locked): string => `*${what.name.replace(/[{}]/g, "?")}*`;
    const channelsOf = (what: Locked): Promise<unknown> => redis.pubsub("CHANNELS", about(what));
    const taken = async (side: Side, what: Locked, leaseMs?: number): Promise<Held> => {
      const held = await side.acquire(what, { waitMs: 0, ...(leaseMs === undefined ? {} : { leaseMs }) });
      if (held === undefined) throw new Error(`${what.type} ${what.name} was not free`);
      return held;
    };
    /** Resolves when a waiter has subscribed. */
    const isWaitedFor = async (what: Locked): Promise<void> => {
      if (what.type === "spin") return;
      await vi.waitFor(async () => expect(await channelsOf(what)).not.toEqual([]), { timeout: PATIENT_MS });
    };

    /**
     * Checks that a waiter is woken in time. A late wake-up is retried twice because a busy machine can delay it.
     * A waiter that gets no message fails every time.
     */
    const wakes = async (
      play: (waitMs: number) => Promise<{ readonly next: Held | undefined; readonly rival: LockType }>,
    ): Promise<void> => {
      for (let chance = 1; ; chance += 1) {
        const { next, rival } = await play(WOKEN_MS);
        if (next !== undefined) {
          expect(await next.unlock(), rival).toBe(true);
          return;
        }
        expect(chance, `${rival} was not woken`).toBeLessThan(3);
      }
    };

    test("HOLD: no other client gets in, and the key expires with the lease", () =>
      each(types, async (type) => {
        const what = fresh(type);
        const held = await taken(holder, what, LONG_MS);
        for (const rival of contenders(type)) {
          expect(await other.acquire({ ...what, type: rival }, { waitMs: 0 }), rival).toBeUndefined();
        }
        expect(await other.isLocked(what)).toBe(true);
        const leftMs = await redis.pttl(keyOf(what));
        expect(leftMs).toBeGreaterThan(0);
        expect(leftMs).toBeLessThanOrEqual(LONG_MS);
        expect(await held.unlock()).toBe(true);
        expect(await redis.exists(keyOf(what))).toBe(0);
        expect(await other.isLocked(what)).toBe(false);
      }));

    test("WAIT: a waiter that times out gets nothing and leaves nothing behind", () =>
      each(types, async (type) => {
        const what = fresh(type);
        const held = await taken(holder, what, LONG_MS);
        for (const rival of contenders(type)) {
          expect(await other.acquire({ ...what, type: rival }, { waitMs: 500 }), rival).toBeUndefined();
        }
        const left = async (): Promise<unknown[]> => [
          await redis.keys(`redisson_lock_queue:${about(what)}`),
          await redis.keys(`redisson_lock_timeout:${about(what)}`),
          await channelsOf(what),
        ];
        await vi.waitFor(async () => expect(await left()).toEqual([[], [], []]), { timeout: PATIENT_MS });
        expect(await held.unlock()).toBe(true);
      }));

    test("WAKE: a release wakes a waiter", () =>
      each(types, async (type) => {
        const what = fresh(type);
        for (const rival of contenders(type)) {
          await wakes(async (waitMs) => {
            const held = await taken(holder, what, LONG_MS);
            const waiting = other.acquire({ ...what, type: rival }, { waitMs, leaseMs: LONG_MS });
            await isWaitedFor(what);
            expect(await held.unlock()).toBe(true);
            return { next: await waiting, rival };
          });
        }
      }));

    test("RENEW: a hold without a lease length is renewed until it is released", () =>
      withLeaseInTime(async (leaseMs) => {
        const renewing = leaseMs === watchdogMs ? holder : await make(x, leaseMs);
        await each(types, async (type) => {
          const what = fresh(type);
          const held = await taken(renewing, what);
          const waits = contenders(type).map((rival) =>
            other.acquire({ ...what, type: rival }, { waitMs: 2 * leaseMs }),
          );
          expect(await Promise.all(waits)).toEqual(waits.map(() => undefined));
          expect(await redis.pttl(keyOf(what))).toBeGreaterThan(0);
          expect(await held.unlock()).toBe(true);
          // A leftover renewal would run within this time.
          await new Promise((resolve) => setTimeout(resolve, leaseMs / 2));
          expect(await redis.exists(keyOf(what))).toBe(0);
        });
      }, watchdogMs));

    test("EXPIRE: a late unlock does not harm the next holder", () =>
      each(types, (type) =>
        withLeaseInTime(async (leaseMs) => {
          const what = fresh(type);
          const [rival = type] = contenders(type);
          const beganMs = performance.now();
          const late = await taken(holder, what, leaseMs);
          const next = await other.acquire({ ...what, type: rival }, { waitMs: PATIENT_MS, leaseMs: LONG_MS });
          expect(performance.now() - beganMs).toBeGreaterThanOrEqual(leaseMs);
          expect(next).toBeDefined();
          expect(await late.unlock()).toBe(false);
          expect(await other.isLocked({ ...what, type: rival })).toBe(true);
          expect(await next?.unlock()).toBe(true);
        }, shortLeaseMs),
      ));

    test("FORCE: a force-release wakes a waiter, and the old holder has lost the lock", () =>
      each(types, async (type) => {
        const what = fresh(type);
        const [rival = type] = contenders(type);
        await withLeaseInTime(async (leaseMs) => {
          const renewing = leaseMs === watchdogMs ? holder : await make(x, leaseMs);
          await wakes(async (waitMs) => {
            const robbed = await taken(renewing, what);
            const waiting = holder.acquire({ ...what, type: rival }, { waitMs, leaseMs: LONG_MS });
            await isWaitedFor(what);
            expect(await other.forceUnlock(what)).toBe(true);
            const next = await waiting;
            expect(await robbed.unlock()).toBe(false);
            return { next, rival };
          });
          // A leftover renewal would run within this time.
          await new Promise((resolve) => setTimeout(resolve, leaseMs / 2));
          expect(await redis.exists(keyOf(what))).toBe(0);
        }, watchdogMs);
        expect(await other.forceUnlock(what)).toBe(false);
      }));

    test("DIE: a crashed holder's lock is free when its lease ends, not before", () =>
      each(types, async (type) => {
        const what = fresh(type);
        const [rival = type] = contenders(type);
        const mortal = await make(x);
        await taken(mortal, what);
        await mortal.die();
        const beganMs = performance.now();
        const leftMs = await redis.pttl(keyOf(what));
        const next = await other.acquire({ ...what, type: rival }, { waitMs: PATIENT_MS, leaseMs: LONG_MS });
        expect(next).toBeDefined();
        // The server counts whole milliseconds.
        expect(performance.now() - beganMs).toBeGreaterThanOrEqual(leftMs - 1);
        expect(await next?.unlock()).toBe(true);
      }));
  });
}
