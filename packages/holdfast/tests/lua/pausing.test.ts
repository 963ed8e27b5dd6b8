/** The scripts that pause and resume, and what the others do where there is a pause: one call each, on a real server. */
import { describe, expect, test } from "vitest";
import type { Script } from "../../src/core/script.js";
import {
  pausingExtend,
  pausingExtendPermits,
  pausingPause,
  pausingPausePermits,
  pausingResume,
  pausingResumePermits,
} from "../../src/generated/pausing-scripts.js";
import {
  mutexAcquire,
  mutexForceRelease,
  mutexReclaim,
  mutexRelease,
  permitsAcquire,
  permitsForceRelease,
  permitsInspect,
  permitsRelease,
} from "../../src/generated/scripts.js";
import { INBOX, KEYS, ScriptServer } from "./script-server.js";

const server = new ScriptServer();

/** Clients A and B listen; C is dead. */
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
  server.run(pausingExtend, { pause: owner, renewed: renewedOf(owner, untilMs), untilMs });
const textOf = (reply: unknown): string => String((reply as unknown[]).at(-1));
const said = async (): Promise<string[]> =>
  (await server.messages()).map((message) => message.replace(/ \d{16} \d{16}/, " token now"));

describe("pausing/pause", () => {
  test("takes a free lock until its end, with a token as of a grant", async () => {
    const untilMs = inAnHour();
    const reply = await pause("r1", untilMs);
    const owner = textOf(reply);
    expect(reply).toEqual([1, expect.any(Number), owner]);
    expect(owner).toMatch(new RegExp(`^pause/\\d{13}/${untilMs}/1/r1/ana/db%20work$`));
    const { lock, queue, fence } = await server.state();
    expect({ lock, queue }).toEqual({ lock: owner, queue: undefined });
    expect(fence).toBeGreaterThan(PAST);
    const left = await server.lifetimes();
    expect(left.lock).toBeGreaterThan(3_500_000);
    expect(left.lock).toBeLessThanOrEqual(3_600_000);
  });

  test("goes before those who wait behind a holder, and stays for as long as that takes", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B, C] });
    const owner = textOf(await pause("r1", inAnHour()));
    expect(await server.state()).toEqual({ lock: A, fence: PAST, queue: [owner, B, C] });
    expect((await server.lifetimes()).queue).toBeGreaterThan(DAY_MS + 3_500_000);
    expect(await said()).toEqual([]);
  });

  test("takes a lock whose holder is gone before those who wait", async () => {
    await server.set({ fence: PAST, queue: [B] });
    const owner = textOf(await pause("r1"));
    const { fence: _, ...rest } = await server.state();
    expect(rest).toEqual({ lock: owner, queue: [B] });
    expect(await said()).toEqual([]);
    const { queue } = await server.lifetimes();
    expect(queue).toBeGreaterThan(50_000);
    expect(queue).toBeLessThanOrEqual(60_000);
  });

  test("gives one request one answer, held or waiting, and another one the pause that stands", async () => {
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

  test("does nothing when its end has passed, or when it was resumed already", async () => {
    expect(await pause("r1", Date.now() - 5)).toEqual([2, expect.any(Number)]);
    expect(await server.state()).toEqual({});
    await pause("r1");
    await resume("s1");
    expect(await pause("r1")).toEqual([3, expect.any(Number)]);
    const { lock } = await server.state();
    expect(lock).toBeUndefined();
  });

  test("comes after a pause that still waits although its end has passed", async () => {
    await server.set({ lock: A, fence: PAST });
    await server.redis.zadd(KEYS.queue as string, -3, "pause/1/2/1/r0/old/old");
    await server.redis.pexpire(KEYS.queue as string, DAY_MS);
    const owner = textOf(await pause("r1"));
    expect((await server.state()).queue?.[0]).toBe(owner);
  });
});

describe("pausing/resume", () => {
  test("grants the first of those who wait and are there, and leaves the others", async () => {
    const owner = textOf(await pause("r1"));
    for (const [i, waiter] of [C, B, A].entries()) await server.redis.zadd(KEYS.queue as string, i, waiter);
    expect(await resume("s1")).toEqual([1, expect.any(Number), 3, owner]);
    const { lock, queue } = await server.state();
    expect({ lock, queue }).toEqual({ lock: B, queue: [A] });
    expect(await said()).toEqual(["B +2 token now"]);
  });

  test("frees a lock that nobody waits for, and lets the fence go as it always does", async () => {
    await pause("r1");
    expect(await resume("s1")).toEqual([1, expect.any(Number), 0, expect.stringContaining("/r1/")]);
    expect((await server.state()).lock).toBeUndefined();
    const { fence } = await server.lifetimes();
    expect(fence).toBeGreaterThan(500_000);
    expect(fence).toBeLessThanOrEqual(600_000);
    expect(await server.redis.pttl(KEYS.resumed as string)).toBeGreaterThan(500_000);
  });

  test("takes a pause out of the queue that waits for a holder, and leaves everybody else as they were", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B] });
    const owner = textOf(await pause("r1"));
    expect(await resume("s1")).toEqual([1, expect.any(Number), 1, owner]);
    expect(await server.state()).toEqual({ lock: A, fence: PAST, queue: [B] });
    expect((await server.lifetimes()).queue).toBeLessThanOrEqual(60_000);
  });

  test("grants who waits where a holder is gone and the pause has not come to hold", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B] });
    await pause("r1");
    await server.redis.del(KEYS.lock as string);
    await resume("s1");
    expect((await server.state()).lock).toBe(B);
  });

  test("gives one request one answer, also when somebody has paused again since", async () => {
    await pause("r1");
    const first = await resume("s1");
    expect(await resume("s1")).toEqual(first);
    const second = textOf(await pause("r2"));
    expect(await resume("s1")).toEqual(first);
    expect((await server.state()).lock).toBe(second);
  });

  test("says that there is no pause where there is none, whoever holds", async () => {
    expect(await resume("s1")).toEqual([0]);
    await server.set({ lock: A, fence: PAST, queue: [B] });
    expect(await resume("s1")).toEqual([0]);
    expect(await server.state()).toEqual({ lock: A, fence: PAST, queue: [B] });
  });
});

describe("pausing/resume of one pause", () => {
  test("leaves another one as it is, and ends the one that is meant", async () => {
    const old = textOf(await pause("r1"));
    await resume("s1");
    const owner = textOf(await pause("r2"));
    expect(await resume("s2", old)).toEqual([2, expect.any(Number), owner]);
    expect((await server.state()).lock).toBe(owner);
    expect(await resume("s3", owner)).toEqual([1, expect.any(Number), 0, owner]);
    expect(await resume("s4", owner)).toEqual([0]);
  });
});

describe("pausing/extend", () => {
  test("gives a pause that holds another end, later or earlier, and grants nobody", async () => {
    const owner = textOf(await pause("r1", inAnHour()));
    await server.redis.zadd(KEYS.queue as string, 1, B);
    const { fence } = await server.state();
    for (const untilMs of [inAnHour() + 3_600_000, Date.now() + 600_000]) {
      const { lock = "" } = await server.state();
      const renewed = renewedOf(owner, untilMs);
      expect(await extend(lock, untilMs)).toEqual([1, expect.any(Number)]);
      expect(await extend(lock, untilMs), "sent again").toEqual([1, expect.any(Number)]);
      expect(await server.state()).toEqual({ lock: renewed, fence, queue: [B] });
      const left = await server.lifetimes();
      expect(left.lock).toBeLessThanOrEqual(untilMs - Date.now() + 100);
      expect(left.lock).toBeGreaterThan(untilMs - Date.now() - 60_000);
      expect(left.fence).toBeGreaterThan(left.lock);
    }
    expect(await said()).toEqual([]);
    expect(await resume("s1")).toMatchObject({ 0: 1, 2: 1 });
    expect((await server.state()).lock).toBe(B);
  });

  test("gives one that waits for a holder another end, in its place", async () => {
    await server.set({ lock: A, fence: PAST, queue: [B] });
    const owner = textOf(await pause("r1", inAnHour()));
    const untilMs = inAnHour() + 7_200_000;
    expect(await extend(owner, untilMs)).toEqual([1, expect.any(Number)]);
    expect((await server.state()).queue).toEqual([renewedOf(owner, untilMs), B]);
    expect((await server.lifetimes()).queue).toBeGreaterThan(DAY_MS + 3 * 3_500_000);
    await server.run(mutexRelease, { owner: A, token: PAST });
    expect((await server.state()).lock).toBe(renewedOf(owner, untilMs));
  });

  test("leaves another pause alone, and says which it is, or that there is none", async () => {
    const owner = textOf(await pause("r1", inAnHour()));
    const other = owner.replace("/r1/", "/r0/");
    const state = await server.state();
    expect(await extend(other, NEVER)).toEqual([0, expect.any(Number), owner]);
    expect(await extend(owner, Date.now() - 5)).toEqual([2, expect.any(Number)]);
    expect(await server.state()).toEqual(state);
    await resume("s1");
    expect(await extend(owner, NEVER)).toEqual([0, expect.any(Number)]);
    expect((await server.state()).lock).toBeUndefined();
  });
});

describe("a mutex that is paused", () => {
  test("refuses whoever comes, with the pause, and queues who waits through", async () => {
    const owner = textOf(await pause("r1", inAnHour()));
    const refused = [1, expect.any(Number), expect.any(Number), owner];
    expect(await server.run(mutexAcquire, { owner: A, enqueue: 0 })).toEqual(refused);
    expect(await server.run(mutexAcquire, { owner: A, enqueue: 1 })).toEqual(refused);
    expect((await server.state()).queue).toBeUndefined();
    expect(await server.run(mutexAcquire, { owner: A, enqueue: 2 })).toEqual([0, ...refused.slice(1)]);
    expect((await server.state()).queue).toEqual([A]);
    expect(await server.run(mutexAcquire, { owner: A, enqueue: 1 }), "who waits already").toEqual([
      0,
      ...refused.slice(1),
    ]);
  });

  test("refuses in the same way while its holder is there, and keeps the queue for as long as the pause", async () => {
    await server.set({ lock: A, fence: PAST, queue: [C] });
    const owner = textOf(await pause("r1"));
    expect(await server.run(mutexAcquire, { owner: B, enqueue: 1 })).toEqual([
      1,
      expect.any(Number),
      expect.any(Number),
      owner,
    ]);
    expect(await server.run(mutexAcquire, { owner: B, enqueue: 2 })).toMatchObject({ 0: 0, 3: owner });
    expect(await server.run(mutexAcquire, { owner: C, enqueue: 1 })).toMatchObject({ 0: 0, 3: owner });
    expect((await server.state()).queue).toEqual([owner, C, B]);
    expect((await server.lifetimes()).queue).toBeGreaterThan(DAY_MS);
  });

  test("goes from its holder to the pause, by a release, by force, and when the lease is over", async () => {
    const ends: (() => Promise<unknown>)[] = [
      () => server.run(mutexRelease, { owner: A, token: PAST }),
      () => server.run(mutexForceRelease, { owner: "", token: PAST, note: "" }),
      async () => {
        await server.redis.del(KEYS.lock as string);
        await server.run(mutexAcquire, { owner: A, enqueue: 0 });
      },
    ];
    for (const end of ends) {
      await server.redis.flushall();
      await server.set({ lock: A, fence: PAST, queue: [B] });
      const owner = textOf(await pause("r1"));
      await end();
      const { lock, queue, fence } = await server.state();
      expect({ lock, queue }).toEqual({ lock: owner, queue: [B] });
      expect(fence, "the old holder's release is too late").toBeGreaterThan(PAST);
      expect((await server.lifetimes()).queue).toBeLessThanOrEqual(60_000);
    }
  });

  test("is nobody's to take by force, whatever token is named", async () => {
    const owner = textOf(await pause("r1"));
    const { fence } = await server.state();
    for (const named of [
      { owner, token: "" },
      { owner: "", token: fence ?? 0 },
      { owner, token: fence ?? 0 },
    ]) {
      expect(await server.run(mutexForceRelease, { ...named, note: "" })).toBe(0);
    }
    expect((await server.state()).lock).toBe(owner);
  });

  test("goes to who waits when the end of a pause has passed that never came to hold", async () => {
    await server.set({ lock: A, fence: PAST, queue: [] });
    await server.redis.zadd(KEYS.queue as string, -3, "pause/1/2/1/r0/old/old", 5, B);
    await server.redis.pexpire(KEYS.queue as string, DAY_MS);
    expect(await server.run(mutexAcquire, { owner: C, enqueue: 1 })).toHaveLength(3);
    expect(await server.run(mutexRelease, { owner: A, token: PAST })).toBe(1);
    expect((await server.state()).lock).toBe(B);
    expect((await server.lifetimes()).queue).toBeLessThanOrEqual(60_000);
  });

  test("is put back by a holder that came after a pause which a failover has brought back, and not by one before", async () => {
    const owner = textOf(await pause("r1"));
    const { fence = 0 } = await server.state();
    expect(await server.run(mutexReclaim, { owner: A, token: fence - 1 })).toBe(0);
    expect((await server.state()).lock).toBe(owner);
    expect(await server.run(mutexReclaim, { owner: A, token: fence + 1 })).toBe(1);
    expect((await server.state()).lock).toBe(A);
  });

  test("a forced release brings its words to the holder", async () => {
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

  test("are all the pause's when nobody holds, and its keys go when it is resumed", async () => {
    await run(permitsAcquire, { owner: A });
    const owner = textOf(await run(pausingPausePermits, { request: "r1" }));
    expect(await holders()).toEqual([A]);
    expect(await queue()).toEqual([owner]);
    expect(await run(permitsAcquire, { owner: B, enqueue: 1 })).toMatchObject({ 0: 1, 3: owner });
    expect(await run(permitsAcquire, { owner: B, enqueue: 2 })).toMatchObject({ 0: 0, 3: owner });
    const grant = await server.redis.hget(BASE, A);
    expect(await run(permitsRelease, { owner: A, token: String(grant?.split("/")[1]) })).toBe(1);
    expect(await holders()).toEqual([owner]);
    expect(await run(permitsAcquire, { owner: C, enqueue: 0 })).toMatchObject({ 0: 1, 3: owner });
    expect(await run(permitsForceRelease, { owner })).toBe(0);
    expect(await server.redis.pttl(BASE)).toBeGreaterThan(DAY_MS);

    expect(await run(pausingResumePermits, { request: "s1" })).toEqual([1, expect.any(Number), 1, owner]);
    expect(await holders()).toEqual([B]);
    expect(await said()).toEqual(["B +2 token now 0"]);
    for (const key of await server.redis.keys("*")) {
      expect(await server.redis.pttl(key), key).toBeGreaterThan(0);
      expect(await server.redis.pttl(key), key).toBeLessThan(3_600_000);
    }
  });

  test("give one request one answer, and no copy undoes what came after it", async () => {
    await run(permitsAcquire, { owner: A });
    const first = await run(pausingPausePermits, { request: "r1" });
    expect(textOf(await run(pausingPausePermits, { request: "r1" }))).toBe(textOf(first));
    expect(await run(pausingPausePermits, { request: "r2" })).toEqual([0, expect.any(Number), textOf(first)]);
    const resumed = await run(pausingResumePermits, { request: "s1" });
    expect(await run(pausingPausePermits, { request: "r1" })).toEqual([3, expect.any(Number)]);
    const second = textOf(await run(pausingPausePermits, { request: "r2" }));
    expect(await run(pausingResumePermits, { request: "s1" })).toEqual(resumed);
    expect(await queue()).toEqual([second]);
    expect(await run(pausingPausePermits, { request: "r3", untilMs: Date.now() - 5 })).toMatchObject({ 0: 0 });
    await run(pausingResumePermits, { request: "s2" });
    expect(await run(pausingPausePermits, { request: "r3", untilMs: Date.now() - 5 })).toEqual([2, expect.any(Number)]);
    expect(await run(pausingResumePermits, { request: "s3" })).toEqual([0]);
  });

  test("have a pause that gets another end, as it holds and while it waits", async () => {
    await run(permitsAcquire, { owner: A });
    const owner = textOf(await run(pausingPausePermits, { request: "r1", untilMs: inAnHour() }));
    const later = inAnHour() + DAY_MS;
    const extendTo = (meant: string, untilMs: number): Promise<unknown> =>
      run(pausingExtendPermits, { pause: meant, renewed: renewedOf(owner, untilMs), untilMs });
    expect(await extendTo(owner, later)).toEqual([1, expect.any(Number)]);
    expect(await extendTo(owner, later), "sent again").toEqual([1, expect.any(Number)]);
    expect(await queue()).toEqual([renewedOf(owner, later)]);
    const grant = await server.redis.hget(BASE, A);
    await run(permitsRelease, { owner: A, token: String(grant?.split("/")[1]) });
    expect(await holders()).toEqual([renewedOf(owner, later)]);
    const token = (await server.redis.hget(BASE, renewedOf(owner, later)))?.split("/")[1];

    const earlier = Date.now() + 600_000;
    expect(await extendTo(owner, earlier), "no longer known by that id").toMatchObject({ 0: 0 });
    expect(await extendTo(renewedOf(owner, later), earlier)).toEqual([1, expect.any(Number)]);
    expect(await holders()).toEqual([renewedOf(owner, earlier)]);
    expect(await server.redis.hget(BASE, renewedOf(owner, earlier))).toBe(`1000000000/${token}/`);
    expect(Number(await server.redis.hget(BASE, "used"))).toBe(1_000_000_000);
    expect(Number(await server.redis.zscore(`${BASE}:holders`, renewedOf(owner, earlier)))).toBeLessThanOrEqual(
      earlier * 1_000 + 1_000,
    );
    expect(await run(permitsAcquire, { owner: B, enqueue: 2 })).toMatchObject({ 0: 0 });
    expect(await run(pausingResumePermits, { request: "s1", only: owner })).toMatchObject({ 0: 2 });
    expect(await run(pausingResumePermits, { request: "s2", only: renewedOf(owner, earlier) })).toMatchObject({ 0: 1 });
    expect(await holders()).toEqual([B]);
  });

  test("are paused before anybody has said how many there are, and are counted once somebody has", async () => {
    const owner = textOf(await run(pausingPausePermits, { request: "r1", untilMs: Date.now() + 3_600_000 }));
    expect(await queue()).toEqual([owner]);
    expect(await run(permitsAcquire, { owner: A, enqueue: 0 })).toMatchObject({ 0: 1, 3: owner });
    expect(await holders()).toEqual([owner]);
    const [, capacity] = (await run(permitsInspect, {})) as number[];
    expect(capacity).toBe(3);
    expect(await server.redis.pttl(BASE)).toBeGreaterThan(3_500_000);
  });

  test("that lost the ends of their holders keep the pause for as long as it says itself", async () => {
    const untilMs = Date.now() + 3_600_000;
    await run(permitsAcquire, { owner: A });
    await run(permitsForceRelease, { owner: A });
    const owner = textOf(await run(pausingPausePermits, { request: "r1", untilMs }));
    expect(await holders()).toEqual([owner]);
    await server.redis.del(`${BASE}:holders`);
    await server.redis.hset(BASE, "first", 0);
    expect(await run(permitsAcquire, { owner: B, enqueue: 0 })).toMatchObject({ 0: 1, 3: owner });
    expect(Number(await server.redis.zscore(`${BASE}:holders`, owner))).toBe(untilMs * 1_000);
  });
});
