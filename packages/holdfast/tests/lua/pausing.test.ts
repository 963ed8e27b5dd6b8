/** The scripts that pause and resume, and the behavior of other scripts during a pause. Runs on a real server. */
import { describe, expect, test } from "vitest";
import type { Script } from "../../src/core/store.js";
import {
  pausingExtend,
  pausingPause,
  pausingPausePermits,
  pausingResume,
  pausingResumePermits,
} from "../../src/generated/pausing.js";
import {
  multiLockAcquire,
  mutexAcquire,
  mutexExtend,
  mutexForceRelease,
  mutexInspect,
  mutexLeave,
  mutexReclaim,
  mutexRelease,
  permitsAcquire,
  permitsForceRelease,
  permitsInspect,
  permitsRelease,
  permitsResize,
} from "../../src/generated/scripts.js";
import { INBOX, KEYS, ScriptServer } from "./script-server.js";

const server = new ScriptServer();

/** Clients A and B are subscribed to their inboxes. C is not, so it counts as crashed. */
const A = "A/1/30000/1";
const B = "B/2/40000/1";
const C = "C/3/30000/1";
const PAST = 1_600_000_000_000_000;
const NEVER = 9_000_000_000_000;
const DAY_MS = 86_400_000;
const WORDS = "ana/db%20work";

const inAnHour = (): number => Date.now() + 3_600_000;
const pause = (request: string, untilMs: number = NEVER): Promise<unknown> =>
  server.run(pausingPause, { request, untilMs, words: WORDS });
const resume = (request: string, only = ""): Promise<unknown> => server.run(pausingResume, { request, only });
const renewedOf = (owner: string, untilMs: number): string => owner.replace(/^(pause\/\d+)\/\d+/, `$1/${untilMs}`);
const extend = (owner: string, untilMs: number): Promise<unknown> =>
  server.run(pausingExtend, { meant: owner, renewed: renewedOf(owner, untilMs), untilMs });
const textOf = (reply: unknown): string => String((reply as unknown[]).at(-1));
const said = async (): Promise<string[]> =>
  (await server.messages()).map((message) => message.replace(/ \d{16} \d{16}/, " token now"));

/** The script without the hand-off, as it runs on a server that may not grant yet. */
const inGrace = (script: Script): Script => ({ ...script, ...script.withoutGrant });
/** Number of commands that scripts have run so far. */
const commands = async (): Promise<number> => {
  const stats = String(await server.redis.info("commandstats"));
  const calls = [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)];
  const ofScripts = calls.filter(([, name = ""]) => !/^(info|eval)$/.test(name));
  return ofScripts.reduce((sum, [, , count]) => sum + Number(count), 0);
};

describe("pausing/pause", () => {
  test("writes a key that expires with the pause, and raises the fence of a free lock", async () => {
    await server.set({ fence: PAST });
    const untilMs = inAnHour();
    const reply = await pause("r1", untilMs);
    const owner = textOf(reply);
    expect(reply).toEqual([1, expect.any(Number), owner]);
    expect(owner).toMatch(new RegExp(`^pause/\\d{13}/${untilMs}/1/r1/ana/db%20work$`));
    const { fence, ...rest } = await server.state();
    expect(rest).toEqual({ pause: owner });
    expect(fence).toBeGreaterThan(PAST);
    const left = await server.lifetimes();
    expect(left.pause).toBeGreaterThan(3_500_000);
    expect(left.pause).toBeLessThanOrEqual(3_600_001);
    expect(Math.round((left.fence - left.pause) / 1_000)).toBe(600);
  });

  test("lasts until it is resumed if it has no end, and keeps its token for a day", async () => {
    await pause("r1");
    const left = await server.lifetimes();
    expect(left.pause).toBeGreaterThan(50 * 365 * DAY_MS);
    expect(left.fence).toBeGreaterThan(DAY_MS);
    expect(left.fence).toBeLessThanOrEqual(DAY_MS + 600_000);
  });

  test("does not change the holder, its token, or the queue", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B, C] });
    const owner = textOf(await pause("r1", inAnHour()));
    expect(await server.state()).toEqual({ lock: A, fence: PAST, queue: [B, C], pause: owner });
    const { queue } = await server.lifetimes();
    expect(queue).toBeLessThanOrEqual(50_000);
    expect(await said()).toEqual([]);
    expect(await server.run(mutexExtend, { owner: A, token: PAST })).toBe(1);
  });

  test("grants no waiter after the holder is gone", async () => {
    await server.set({ fence: PAST, queue: [B] });
    const owner = textOf(await pause("r1"));
    const { fence, ...rest } = await server.state();
    expect(rest).toEqual({ queue: [B], pause: owner });
    expect(fence).toBeGreaterThan(PAST);
    expect(await said()).toEqual([]);
  });

  test("does not raise the fence on a server that may not grant, so a holder can reclaim its lease", async () => {
    await server.set({ fence: PAST });
    const args = { request: "r1", untilMs: NEVER, words: WORDS };
    const owner = textOf(await server.run(inGrace(pausingPause), args));
    expect(await server.state()).toEqual({ fence: PAST, pause: owner });
    expect(await server.run(mutexReclaim, { owner: A, token: PAST })).toBe(1);
    expect(await server.state()).toEqual({ lock: A, fence: PAST, pause: owner });
  });

  test("a repeated pause gets the same reply, and a different request gets the existing pause", async () => {
    for (const lock of [undefined, A]) {
      await server.redis.flushall();
      if (lock !== undefined) await server.set({ lock, fence: PAST });
      const first = await pause("r1");
      const state = await server.state();
      expect(textOf(await pause("r1"))).toBe(textOf(first));
      expect(await pause("r2")).toEqual([0, expect.any(Number), textOf(first)]);
      expect(await server.state()).toEqual(state);
    }
  });

  test("does nothing if its end has passed or if it was already resumed", async () => {
    expect(await pause("r1", Date.now() - 60_000)).toEqual([2, expect.any(Number)]);
    expect(await server.state()).toEqual({});
    await pause("r1");
    await resume("s1");
    expect(await pause("r1")).toEqual([3, expect.any(Number)]);
    expect((await server.state()).pause).toBeUndefined();
  });
});

describe("pausing/resume", () => {
  test("grants the first waiter that is subscribed and leaves the later ones in the queue", async () => {
    const owner = textOf(await pause("r1"));
    const { fence: moved = 0 } = await server.state();
    for (const [i, waiter] of [C, B, A].entries()) await server.redis.zadd(KEYS.queue as string, i, waiter);
    expect(await resume("s1")).toEqual([1, expect.any(Number), 3, owner]);
    const { fence, ...rest } = await server.state();
    expect(rest).toEqual({ lock: B, queue: [A] });
    expect(fence).toBeGreaterThan(moved);
    expect(await said()).toEqual(["B +2 token now"]);
  });

  test("without waiters, the fence keeps its usual lifetime", async () => {
    await pause("r1");
    expect(await resume("s1")).toEqual([1, expect.any(Number), 0, expect.stringContaining("/r1/")]);
    const { fence: _, ...rest } = await server.state();
    expect(rest).toEqual({});
    const { fence } = await server.lifetimes();
    expect(fence).toBeGreaterThan(500_000);
    expect(fence).toBeLessThanOrEqual(600_000);
    expect(await server.redis.pttl(KEYS.resumed as string)).toBeGreaterThan(500_000);
  });

  test("does not change the holder, its token, or the queue", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B] });
    const owner = textOf(await pause("r1"));
    expect(await resume("s1")).toEqual([1, expect.any(Number), 1, owner]);
    expect(await server.state()).toEqual({ lock: A, fence: PAST, queue: [B] });
  });

  test("grants a waiter if the holder is gone", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B] });
    await pause("r1");
    await server.redis.del(KEYS.lock as string);
    await resume("s1");
    expect((await server.state()).lock).toBe(B);
  });

  test("a repeated resume gets the same reply and does not end a later pause", async () => {
    await pause("r1");
    const first = await resume("s1");
    expect(await resume("s1")).toEqual(first);
    const second = textOf(await pause("r2"));
    expect(await resume("s1")).toEqual(first);
    expect((await server.state()).pause).toBe(second);
  });

  test("reports that there is no pause, for a free lock and for a held one", async () => {
    expect(await resume("s1")).toEqual([0]);
    await server.set({ lock: A, fence: PAST, queue: [B] });
    expect(await resume("s1")).toEqual([0]);
    expect(await server.state()).toEqual({ lock: A, fence: PAST, queue: [B] });
  });
});

describe("pausing/resume of one pause", () => {
  test("ends only the pause that it names", async () => {
    const old = textOf(await pause("r1"));
    await resume("s1");
    const owner = textOf(await pause("r2"));
    expect(await resume("s2", old)).toEqual([2, expect.any(Number), owner]);
    expect((await server.state()).pause).toBe(owner);
    expect(await resume("s3", owner)).toEqual([1, expect.any(Number), 0, owner]);
    expect(await resume("s4", owner)).toEqual([0]);
  });
});

describe("pausing/extend", () => {
  test("moves the end of a pause later or earlier, and grants no waiter", async () => {
    const owner = textOf(await pause("r1", inAnHour()));
    await server.redis.zadd(KEYS.queue as string, 1, B);
    const { fence } = await server.state();
    for (const untilMs of [inAnHour() + 3_600_000, Date.now() + 600_000]) {
      const { pause: standing = "" } = await server.state();
      const renewed = renewedOf(owner, untilMs);
      expect(await extend(standing, untilMs)).toEqual([1, expect.any(Number)]);
      expect(await extend(standing, untilMs), "sent again").toEqual([1, expect.any(Number)]);
      expect(await server.state()).toEqual({ pause: renewed, fence, queue: [B] });
      const left = await server.lifetimes();
      expect(left.pause).toBeLessThanOrEqual(untilMs - Date.now() + 100);
      expect(left.pause).toBeGreaterThan(untilMs - Date.now() - 60_000);
    }
    expect(await said()).toEqual([]);
    expect(await resume("s1")).toMatchObject({ 0: 1, 2: 1 });
    expect((await server.state()).lock).toBe(B);
  });

  test("does not change a different pause, and reports that pause or that there is none", async () => {
    const owner = textOf(await pause("r1", inAnHour()));
    const other = owner.replace("/r1/", "/r0/");
    const state = await server.state();
    expect(await extend(other, NEVER)).toEqual([0, expect.any(Number), owner]);
    expect(await extend(owner, Date.now() - 60_000)).toEqual([2, expect.any(Number)]);
    expect(await server.state()).toEqual(state);
    await resume("s1");
    expect(await extend(owner, NEVER)).toEqual([0, expect.any(Number)]);
    expect((await server.state()).pause).toBeUndefined();
  });
});

describe("a mutex that is paused", () => {
  test("refuses acquires with the pause and its remaining time, and queues callers that wait through it", async () => {
    const owner = textOf(await pause("r1", inAnHour()));
    const { fence } = await server.state();
    const refused = [1, expect.any(Number), expect.any(Number), owner];
    const [, restMs = 0] = (await server.run(mutexAcquire, { owner: A, enqueue: 0 })) as number[];
    expect(restMs).toBeGreaterThan(3_500_000);
    expect(restMs).toBeLessThanOrEqual(3_600_001);
    expect(await server.run(mutexAcquire, { owner: A, enqueue: 1 })).toEqual(refused);
    expect((await server.state()).queue).toBeUndefined();
    expect(await server.run(mutexAcquire, { owner: A, enqueue: 2 })).toEqual([0, ...refused.slice(1)]);
    expect((await server.state()).queue).toEqual([A]);
    expect(await server.run(mutexAcquire, { owner: A, enqueue: 1 }), "who waits already").toEqual([
      0,
      ...refused.slice(1),
    ]);
    expect(await server.run(mutexAcquire, { owner: A, enqueue: 0 }), "who asks without waiting").toEqual(refused);
    expect((await server.state()).fence, "one token for all of them").toBe(fence);
    expect((await server.lifetimes()).queue).toBeLessThanOrEqual(60_000);
  });

  test("refuses acquires while it is held, with the remaining lease time", async () => {
    await server.set({ lock: A, fence: PAST, queue: [C] });
    const owner = textOf(await pause("r1"));
    const reply = (await server.run(mutexAcquire, { owner: B, enqueue: 1 })) as unknown[];
    expect(reply).toEqual([1, expect.any(Number), expect.any(Number), owner]);
    expect(reply[1]).toBeLessThanOrEqual(60_000);
    expect(await server.run(mutexAcquire, { owner: B, enqueue: 2 })).toMatchObject({ 0: 0, 3: owner });
    expect(await server.run(mutexAcquire, { owner: C, enqueue: 1 })).toMatchObject({ 0: 0, 3: owner });
    expect(await server.state()).toEqual({ lock: A, fence: PAST, queue: [C, B], pause: owner });
    const inspected = await server.run(mutexInspect, { owner: "", most: 10 });
    expect(inspected).toEqual([1, expect.any(Number), PAST, 2, -1, owner, A, C, B]);
  });

  test("grants no waiter on a release, a force-release, a leave, or an expired lease", async () => {
    const ends: (() => Promise<unknown>)[] = [
      () => server.run(mutexRelease, { owner: A, token: PAST }),
      () => server.run(mutexForceRelease, { owner: "", token: PAST, note: "" }),
      () => server.run(mutexLeave, { owner: A }),
      async () => {
        await server.redis.del(KEYS.lock as string);
        await server.redis.pexpire(KEYS.fence as string, 600_000);
        await server.run(mutexAcquire, { owner: A, enqueue: 0 });
      },
      // An unconfirmed grant ends long before its lease. The lifetime of the fence follows the lease.
      async () => {
        await server.redis.del(KEYS.lock as string);
        await server.redis.set(KEYS.handed as string, "A");
        await server.run(mutexAcquire, { owner: A, enqueue: 0 });
      },
    ];
    for (const end of ends) {
      await server.redis.flushall();
      await server.set({ lock: A, fence: PAST, queue: [B] });
      const owner = textOf(await pause("r1"));
      await end();
      const { fence, ...rest } = await server.state();
      expect(rest).toEqual({ queue: [B], pause: owner });
      expect(fence, "the old holder's release is too late").toBeGreaterThan(PAST + 1);
      expect(await server.run(mutexRelease, { owner: A, token: PAST })).toBe(3);
      expect((await said()).filter((message) => message.startsWith("B"))).toEqual([]);
    }
  });

  test("raises the fence only once if a lease ended during the pause", async () => {
    await server.set({ lock: A, fence: PAST });
    await pause("r1");
    await server.redis.del(KEYS.lock as string);
    await server.redis.pexpire(KEYS.fence as string, 599_000);
    await server.run(mutexAcquire, { owner: B, enqueue: 2 });
    const { fence = 0 } = await server.state();
    expect(fence).toBeGreaterThan(PAST);
    for (const enqueue of [0, 1, 2]) await server.run(mutexAcquire, { owner: B, enqueue });
    expect((await server.state()).fence).toBe(fence);
    expect(await server.run(mutexExtend, { owner: A, token: PAST })).toBe(3);
  });

  test("cannot be acquired as part of a multi-lock", async () => {
    await pause("r1");
    const keys = ["lock", "fence", "queue", "handed", "pause"].map((name) => KEYS[name] as string);
    const reply = await server.redis.eval(multiLockAcquire.source, 5, ...keys, 30_000, A);
    expect(reply).toEqual([0, 1, -2, expect.any(Number)]);
    await resume("s1");
    expect(await server.redis.eval(multiLockAcquire.source, 5, ...keys, 30_000, A)).toEqual([1, expect.any(Number)]);
  });

  test("grants the first waiter on the next request after the pause expires", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B, A] });
    await pause("r1", inAnHour());
    await server.run(mutexRelease, { owner: A, token: PAST });
    await server.redis.del(KEYS.pause as string);
    expect(await server.run(mutexAcquire, { owner: A, enqueue: 1 })).toHaveLength(3);
    const { lock, queue } = await server.state();
    expect({ lock, queue }).toEqual({ lock: B, queue: [A] });
  });

  test("ignores pauses that an earlier version wrote into the queue", async () => {
    await server.set({ lock: A, fence: PAST });
    const old = `pause/${Date.now() - 1_000}/${NEVER}/1/r0/old/old`;
    await server.redis.zadd(KEYS.queue as string, -3, old, 5, B);
    expect(await server.run(mutexAcquire, { owner: B, enqueue: 1 })).toHaveLength(3);
    expect(await server.run(mutexRelease, { owner: A, token: PAST })).toBe(1);
    expect((await server.state()).lock).toBe(B);
  });

  test("lets only a grant newer than the pause be reclaimed, if a failover restored the pause", async () => {
    await pause("r1");
    const { fence = 0 } = await server.state();
    expect(await server.run(mutexReclaim, { owner: A, token: fence - 1 })).toBe(0);
    expect((await server.state()).lock).toBeUndefined();
    expect(await server.run(mutexReclaim, { owner: A, token: fence + 1 })).toBe(1);
    expect((await server.state()).lock).toBe(A);
  });

  test("refuses with no more commands than a held one; acquire and release need four each", async () => {
    const cost = async (act: () => Promise<unknown>): Promise<number> => {
      const before = await commands();
      await act();
      return (await commands()) - before;
    };
    let token: unknown;
    // EXISTS TIME SET PSETEX
    expect(await cost(async () => (token = await server.run(mutexAcquire, { owner: A })))).toBe(4);
    // EXISTS GET TIME GET ZSCORE ZREVRANGE ZADD PEXPIRE PTTL
    const held = await cost(() => server.run(mutexAcquire, { owner: B, enqueue: 1 }));
    expect(held).toBe(9);
    await server.redis.del(KEYS.queue as string);
    // GET GET EXISTS DEL
    expect(await cost(() => server.run(mutexRelease, { owner: A, token: Number(token) }))).toBe(4);
    await pause("r1");
    expect(await cost(() => server.run(mutexAcquire, { owner: B, enqueue: 1 }))).toBeLessThanOrEqual(held);
    expect(await cost(() => server.run(mutexAcquire, { owner: B, enqueue: 0 }))).toBeLessThanOrEqual(held);
  });

  test("a force-release delivers its note to the holder", async () => {
    await server.set({ lock: A, fence: PAST });
    expect(await server.run(mutexForceRelease, { owner: A, token: "", note: " ana/stuck" })).toBe(1);
    expect(await server.messages()).toEqual(["A -1 ana/stuck"]);
  });
});

describe("permits that are paused", () => {
  const BASE = "hf:semaphore:{t}";
  const run = (script: Script, args: Readonly<Record<string, string | number>>): Promise<unknown> => {
    const key = (name: string): string => (name === "state" ? BASE : `${BASE}:${name}`);
    const given: Readonly<Record<string, string | number>> = {
      ...{
        inbox: INBOX,
        numbered: 1_000,
        declared: 3,
        leaseMs: 30_000,
        weight: 1,
        enqueue: 1,
        owner: "",
        words: WORDS,
        keepMs: 600_000,
      },
      ...{ untilMs: NEVER, only: "", most: 100, mostHeld: 100, token: "", note: "" },
      ...args,
    };
    const words = script.args.map((name) => String(given[name]));
    return server.redis.eval(script.source, script.keys.length, ...script.keys.map(key), ...words);
  };
  const holders = async (): Promise<string[]> =>
    (await server.redis.zrange(`${BASE}:holders`, "0", "-1")).filter((owner) => owner !== "-");
  const queue = (): Promise<string[]> => server.redis.zrange(`${BASE}:queue`, "0", "-1");
  const fence = async (): Promise<number> => Number(await server.redis.get(`${BASE}:fence`));
  const tokenOf = async (owner: string): Promise<string> =>
    String((await server.redis.hget(BASE, owner))?.split("/")[1]);

  test("are not granted until they are resumed, and then go to the waiters that fit", async () => {
    await run(permitsAcquire, { owner: A });
    const owner = textOf(await run(pausingPausePermits, { request: "r1" }));
    expect(await holders()).toEqual([A]);
    const refused = await run(permitsAcquire, { owner: B, enqueue: 1 });
    expect(refused).toMatchObject({ 0: 1, 3: owner });
    expect((refused as number[])[1], "the rest of the lease").toBeLessThanOrEqual(30_000);
    expect(await queue()).toEqual([]);
    expect(await run(permitsAcquire, { owner: B, enqueue: 2 })).toMatchObject({ 0: 0, 3: owner });
    expect(await run(permitsAcquire, { owner: B, enqueue: 1 }), "who waits already").toMatchObject({ 0: 0, 3: owner });
    const token = await tokenOf(A);
    expect(await run(permitsRelease, { owner: A, token })).toBe(1);
    expect(await holders()).toEqual([]);
    expect(await fence(), "an earlier holder is too late").toBeGreaterThan(Number(token));
    const rest = (await run(permitsAcquire, { owner: C, enqueue: 0 })) as number[];
    expect(rest).toMatchObject({ 0: 1, 3: owner });
    expect(rest[1], "the rest of the pause").toBeGreaterThan(DAY_MS);
    await run(permitsResize, { size: 8, request: "z1" });
    expect(await holders()).toEqual([]);
    const state = (await run(permitsInspect, {})) as unknown[];
    expect(state.slice(0, 3)).toEqual([0, 8, 0]);
    expect(state.slice(4)).toEqual([1, -1, 0, owner, B]);

    expect(await run(pausingResumePermits, { request: "s1" })).toEqual([1, expect.any(Number), 1, owner]);
    expect(await holders()).toEqual([B]);
    expect(await said()).toEqual(["B +2 token now 0"]);
    for (const key of await server.redis.keys("*")) {
      expect(await server.redis.pttl(key), key).toBeGreaterThan(0);
      expect(await server.redis.pttl(key), key).toBeLessThan(3_600_000);
    }
  });

  test("raise the fence once without a holder, but not on a server that may not grant", async () => {
    await run(permitsAcquire, { owner: A });
    const token = await tokenOf(A);
    await run(permitsRelease, { owner: A, token });
    await run(inGrace(pausingPausePermits), { request: "r1" });
    expect(await fence()).toBe(Number(token));
    await run(pausingResumePermits, { request: "s1" });
    await run(pausingPausePermits, { request: "r2" });
    const moved = await fence();
    expect(moved).toBeGreaterThan(Number(token));
    for (const enqueue of [0, 1, 2]) await run(permitsAcquire, { owner: B, enqueue });
    expect(await fence(), "one token for all who ask").toBe(moved);
  });

  test("refuse a late release from a holder whose lease ended during the pause", async () => {
    for (const enqueue of [0, 1, 2]) {
      await server.redis.flushall();
      await run(permitsAcquire, { owner: A });
      const token = await tokenOf(A);
      await run(pausingPausePermits, { request: "r1" });
      await server.redis.zadd(`${BASE}:holders`, 1, A);
      await server.redis.hset(BASE, "first", 0);
      expect(await run(permitsAcquire, { owner: B, enqueue })).toMatchObject({ 0: enqueue === 2 ? 0 : 1 });
      expect(await holders()).toEqual([]);
      expect(await run(permitsRelease, { owner: A, token })).toBe(3);
    }
  });

  test("can be force-released, and then go to no waiter", async () => {
    await run(permitsAcquire, { owner: A });
    const owner = textOf(await run(pausingPausePermits, { request: "r1" }));
    await run(permitsAcquire, { owner: B, enqueue: 2 });
    expect(await run(permitsForceRelease, { owner })).toBe(0);
    expect(await run(permitsForceRelease, { owner: A })).toBe(1);
    expect(await holders()).toEqual([]);
    expect(await queue()).toEqual([B]);
  });

  test("give a repeated request the same reply, and a late copy undoes no later pause or resume", async () => {
    await run(permitsAcquire, { owner: A });
    const first = await run(pausingPausePermits, { request: "r1" });
    expect(textOf(await run(pausingPausePermits, { request: "r1" }))).toBe(textOf(first));
    expect(await run(pausingPausePermits, { request: "r2" })).toEqual([0, expect.any(Number), textOf(first)]);
    const resumed = await run(pausingResumePermits, { request: "s1" });
    expect(await run(pausingPausePermits, { request: "r1" })).toEqual([3, expect.any(Number)]);
    const second = textOf(await run(pausingPausePermits, { request: "r2" }));
    expect(await run(pausingResumePermits, { request: "s1" })).toEqual(resumed);
    expect(await server.redis.get(`${BASE}:pause`)).toBe(second);
    expect(await run(pausingPausePermits, { request: "r3", untilMs: Date.now() - 60_000 })).toMatchObject({ 0: 0 });
    expect(await run(pausingResumePermits, { request: "s2", only: textOf(first) })).toMatchObject({ 0: 2 });
    await run(pausingResumePermits, { request: "s3" });
    expect(await run(pausingPausePermits, { request: "r3", untilMs: Date.now() - 60_000 })).toEqual([
      2,
      expect.any(Number),
    ]);
    expect(await run(pausingResumePermits, { request: "s4" })).toEqual([0]);
  });

  test("can be paused before their number is known, and get it from the first acquire", async () => {
    const owner = textOf(await run(pausingPausePermits, { request: "r1", untilMs: Date.now() + 3_600_000 }));
    expect(await server.redis.exists(BASE)).toBe(0);
    expect(await run(permitsAcquire, { owner: A, enqueue: 0 })).toMatchObject({ 0: 1, 3: owner });
    expect(await holders()).toEqual([]);
    const [, capacity] = (await run(permitsInspect, {})) as number[];
    expect(capacity).toBe(3);
  });
});
