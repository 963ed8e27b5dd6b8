/**
 * What must be so whenever two sides share a lock of Redisson: each verb of the checklist, with X on one side and Y on the
 * other. Declares tests, so that any pair of makers can be put to it. A test has all types at a time, since it mostly waits.
 */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { withLeaseInTime } from "../../src/testing/delays.js";
import { type Held, LOCK_TYPES, type Locked, type LockType, type Maker, type Side } from "./side.js";

/** Long enough to be renewed in time on a busy machine. */
const WATCHDOG_MS = 1_500;
const LONG_MS = 60_000;
/** Less than the time after which a waiter of ours asks without a reason: whoever is served within it was woken. */
const WOKEN_MS = 3_500;
const PATIENT_MS = 15_000;

/** How a pair is put to it. */
export interface VerbOptions {
  readonly types?: readonly LockType[];
  /** Makes the name of a lock of a text that no other has. */
  readonly name?: (text: string) => string;
  /** What goes before every name. */
  readonly prefix?: string;
  readonly watchdogMs?: number;
  /** Of a lease that is to end; not so short that it ends before whoever contends has asked twice. */
  readonly shortLeaseMs?: number;
}

/** Who cannot be in while `type` is held. */
function contenders(type: LockType): readonly LockType[] {
  if (type === "read") return ["write"];
  return type === "write" ? ["read", "write"] : [type];
}

/** Checks all of them side by side; whichever fails says its name. */
async function each<Item extends string>(items: readonly Item[], check: (item: Item) => Promise<void>): Promise<void> {
  const ends = await Promise.allSettled(items.map(check));
  ends.forEach((end, i) => {
    if (end.status === "fulfilled") return;
    if (end.reason instanceof Error) end.reason.message = `${items[i]}: ${end.reason.message}`;
    throw end.reason;
  });
}

/** @param port  of the server, once it runs */
export function checkVerbs(x: Maker, y: Maker, port: () => number, options: VerbOptions = {}): void {
  const {
    types = LOCK_TYPES,
    name = (text) => text,
    prefix = "",
    watchdogMs = WATCHDOG_MS,
    shortLeaseMs = 300,
  } = options;
  // Cases that a machine did not let be on time are played again, with a longer lease.
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
    /** A pattern, in which a brace is any character. */
    const about = (what: Locked): string => `*${what.name.replace(/[{}]/g, "?")}*`;
    const channelsOf = (what: Locked): Promise<unknown> => redis.pubsub("CHANNELS", about(what));
    const taken = async (side: Side, what: Locked, leaseMs?: number): Promise<Held> => {
      const held = await side.acquire(what, { waitMs: 0, ...(leaseMs === undefined ? {} : { leaseMs }) });
      if (held === undefined) throw new Error(`${what.type} ${what.name} was not free`);
      return held;
    };
    /** Somebody waits for it. */
    const isWaitedFor = async (what: Locked): Promise<void> => {
      if (what.type === "spin") return;
      await vi.waitFor(async () => expect(await channelsOf(what)).not.toEqual([]), { timeout: PATIENT_MS });
    };

    /**
     * A wake-up in time. One that is late because the machine stood still is given another chance, with time enough to end
     * well: whoever hears nothing is never in time.
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

    test("HOLD: nobody else is in, and the key ends with the lease", () =>
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

    test("WAIT: whoever waits for a time has nothing after it, and leaves nothing", () =>
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

    test("WAKE: who waits is served when it is given back", () =>
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

    test("RENEW: what has no lease of its own stays, until it is given back", () =>
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
          // A renewal that is left over would come by now.
          await new Promise((resolve) => setTimeout(resolve, leaseMs / 2));
          expect(await redis.exists(keyOf(what))).toBe(0);
        });
      }, watchdogMs));

    test("EXPIRE: who comes after a lease that ended is not harmed by its holder", () =>
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

    test("FORCE: who waits is served, and the holder has nothing any more", () =>
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
          // A renewal that is left over would come by now.
          await new Promise((resolve) => setTimeout(resolve, leaseMs / 2));
          expect(await redis.exists(keyOf(what))).toBe(0);
        }, watchdogMs);
        expect(await other.forceUnlock(what)).toBe(false);
      }));

    test("DIE: what a dead holder had is free when its lease is over, not before", () =>
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
