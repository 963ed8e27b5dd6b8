/** `lead` on a real server: how terms end, in which order, and what follows. */
import { getEventListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { embedded } from "@holdfast/embedded";
import { createHoldfast, type Election, type Leadership, LeaseLostError } from "holdfast";
import { Redis } from "ioredis";
import { describe, expect, test, vi } from "vitest";
import { type Runtime, systemRuntime } from "../../holdfast/src/core/runtime.js";
import { createHoldfastOn } from "../../holdfast/src/holdfast.js";
import { lead, ResignedError, type TermEnd, WorkLostError } from "../src/index.js";
import { eventually, heeding, held, useLeadScene } from "./lead-scene.js";

const scene = useLeadScene();

function thrownBy(call: () => void): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

const NOW = { delayMaxMs: 0 } as const;

describe("a term ends", () => {
  test("when its work returns: the lease is released, and the value is the result", async () => {
    const election = scene.another().election(scene.name);
    const running = held<number>();
    const leading = lead(election, running.work, { value: "10.0.0.1", ...NOW });
    const { term } = await running.began;
    expect(await election.leader()).toMatchObject({ value: "10.0.0.1", term, transitions: 0 });
    running.end(5);
    expect(await leading).toBe(5);
    expect(await election.leader()).toBeNull();
    expect(await election.tryAcquire()).not.toBeNull();
  });

  test("on resign: the signal aborts, the work settles, and then the lease is released", async () => {
    const election = scene.another().election(scene.name);
    const rival = scene.another().election(scene.name);
    const running = held<string>();
    const leading = lead(election, running.work, NOW);
    const leadership = await running.began;
    const resigning = election.resign();
    expect(leadership.signal.aborted).toBe(true);
    expect(leadership.signal.reason).toBeInstanceOf(ResignedError);
    leadership.assertHeld();
    const next = rival.campaign("next", { waitMs: Infinity });
    await vi.waitFor(async () => expect((await rival.inspect()).waiterCount).toBe(1), eventually);
    expect(await rival.leader()).toMatchObject({ term: leadership.term });
    running.end("done");
    expect([await resigning, await leading]).toEqual(["released", "done"]);
    expect((await next).term).toBeGreaterThan(leadership.term);
    expect(await rival.leader()).toMatchObject({ transitions: 1 });
    expect(await election.resign()).toBeUndefined();
  });

  test("on resign: a second call gets the same outcome, and without a term it returns undefined", async () => {
    const election = scene.another().election(scene.name);
    const running = held<void>();
    const leading = lead(election, running.work, NOW);
    await running.began;
    const resigning = [election.resign(), election.resign()];
    running.end();
    expect(await Promise.all(resigning)).toEqual(["released", "released"]);
    await leading;

    const rival = scene.another().election(scene.name);
    const first = held<string>();
    const again = lead(election, first.work, { rejoin: true, ...NOW });
    await first.began;
    const next = rival.campaign("next", { waitMs: Infinity });
    await vi.waitFor(async () => expect((await rival.inspect()).waiterCount).toBe(1), eventually);
    first.end("first");
    await next;
    await vi.waitFor(async () => expect((await rival.inspect()).waiterCount).toBe(1), eventually);
    expect(await election.resign(), "it stands, and holds nothing").toBeUndefined();
    expect(await again).toBe("first");
  });

  test("on abort of its signal: in the same order, with the reason of the signal", async () => {
    const election = scene.another().election(scene.name);
    const controller = new AbortController();
    const running = held<string>();
    const leading = lead(election, running.work, { signal: controller.signal, ...NOW });
    const leadership = await running.began;
    const why = new Error("enough");
    controller.abort(why);
    expect(leadership.signal.reason).toBe(why);
    leadership.assertHeld();
    running.end(Promise.reject(why));
    expect(await leading).toBeUndefined();
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  test("when its Holdfast closes: it waits for the work, and neither leader nor candidate throws", async () => {
    const [first, second] = [scene.another(), scene.another()];
    const running = held<string>();
    const leading = lead(first.election(scene.name), running.work, { rejoin: true, ...NOW });
    await running.began;
    const standing = lead(second.election(scene.name), heeding(), { rejoin: true, ...NOW });
    await vi.waitFor(async () => expect((await first.election(scene.name).inspect()).waiterCount).toBe(1), eventually);
    await second.close();
    expect(await standing).toBeUndefined();
    const closing = first.close({ graceMs: 60_000 });
    running.end("last");
    expect((await closing).released).toHaveLength(1);
    expect(await leading).toBe("last");
    await expect(lead(first.election(scene.name), heeding())).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
  });

  test("when its Holdfast closes without grace: as closing, not as a loss", async () => {
    const holdfast = scene.another();
    const stopped = vi.fn();
    const leading = lead(holdfast.election(scene.name), heeding(), { stopped, ...NOW });
    await vi.waitFor(async () => expect(await holdfast.election(scene.name).leader()).not.toBeNull(), eventually);
    await holdfast.close();
    expect(await leading).toBeUndefined();
    expect(stopped.mock.calls.map(([, end]) => end)).toEqual(["closing"]);
  });

  test("on an error of its work, which is rethrown even with rejoin", async () => {
    const election = scene.another().election(scene.name);
    const error = new Error("a bug");
    for (const rejoin of [false, true]) {
      await expect(lead(election, () => Promise.reject(error), { rejoin, ...NOW })).rejects.toBe(error);
    }
    expect(await election.leader()).toBeNull();
  });

  test("when its lease is lost: the error contains the late result of the work", async () => {
    const election = scene.another().election(scene.name);
    const running = held<number>();
    const leading = lead(election, running.work, NOW);
    const { token, owner, signal } = await running.began;
    const late = vi.fn();
    signal.addEventListener("abort", late);
    await scene.another().election(scene.name).forceRelease({ owner, token });
    await vi.waitFor(() => expect(late).toHaveBeenCalledTimes(1), eventually);
    running.end(7);
    const error = await leading.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(WorkLostError);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({
      value: 7,
      reason: "force-released",
      token,
      message: expect.stringMatching(/ is over: it was force-released.* Its result is in error\.value\.$/),
    });
  });

  test("when its lease is lost: work that the signal aborts causes no second error", async () => {
    const election = scene.another().election(scene.name);
    const running = held<never>();
    const leading = lead(election, async (leadership) => {
      void running.work(leadership);
      await pause(600_000, undefined, { signal: leadership.signal });
    });
    const { owner, signal } = await running.began;
    await election.forceRelease({ owner });
    await expect(leading).rejects.toMatchObject({ name: "LeaseLostError", reason: "force-released" });
    expect(signal.aborted).toBe(true);
  });
});

test("the default `maxHoldMs` of a Holdfast does not end a term", async () => {
  const client = new Redis({ port: scene.server.port });
  const holdfast = createHoldfast({ redis: client, maxHoldMs: 100, commandTimeoutMs: 5_000 });
  const running = held<number>();
  const leading = lead(holdfast.election(scene.name), running.work, NOW);
  const leadership = await running.began;
  // This mutex is acquired after the term began and reaches its longest hold.
  const { signal } = await holdfast.mutex(scene.name).acquire();
  await vi.waitFor(() => expect(signal.aborted).toBe(true), eventually);
  leadership.assertHeld();
  running.end(1);
  expect(await leading).toBe(1);
  await holdfast.close();
  client.disconnect();
});

describe("a candidate", () => {
  test.each(["during its delay", "in the queue", "before it starts"])(
    "that is stopped %s leaves nothing behind",
    async (when) => {
      const election = scene.another().election(scene.name);
      const leader = await scene.another().election(scene.name).campaign("there");
      const controller = new AbortController();
      const work = vi.fn();
      const ends = vi.fn();
      if (when === "before it starts") controller.abort(new Error("never mind"));
      const delayMaxMs = when === "during its delay" ? 86_400_000 : 0;
      const listeners = { started: ends, stopped: ends };
      const standing = lead(election, work, { signal: controller.signal, delayMaxMs, ...listeners });
      if (when === "in the queue") {
        await vi.waitFor(async () => expect((await election.inspect()).waiterCount).toBe(1), eventually);
      }
      if (when === "during its delay") expect(await election.resign()).toBeUndefined();
      else controller.abort(new Error("never mind"));
      expect(await standing).toBeUndefined();
      await vi.waitFor(async () => expect((await election.inspect()).waiterCount).toBe(0), eventually);
      expect([work.mock.calls, ends.mock.calls]).toEqual([[], []]);
      expect(getEventListeners(controller.signal, "abort")).toEqual([]);
      await leader.release();
    },
  );

  test.each([
    ["resigned", "resigned", (election: Election) => election.resign()],
    ["force-released", "lost", (election: Election, { owner }: Leadership) => election.forceRelease({ owner })],
  ] as const)("whose term is %s while `started` runs does not start work", async (_, end, stop) => {
    const election = scene.another().election(scene.name);
    const [work, stopped, began] = [vi.fn(), vi.fn(), held<void>()];
    const leading = lead(election, work, { ...NOW, started: began.work, stopped }).catch((error: unknown) => error);
    const leadership = await began.began;
    void stop(election, leadership);
    await vi.waitFor(() => expect(leadership.signal.aborted).toBe(true), eventually);
    began.end();
    expect(await leading).toEqual(end === "lost" ? expect.any(LeaseLostError) : undefined);
    expect(stopped.mock.calls.map(([, how]) => how)).toEqual([end]);
    expect(work).not.toHaveBeenCalled();
  });

  test.each(["started", "stopped"] as const)("rejects with the error of an async `%s` callback", async (when) => {
    const failure = new Error("no such service");
    const work = vi.fn();
    const listener = { [when]: () => Promise.reject(failure) };
    const election = scene.another().election(scene.name);
    await expect(lead(election, work, { ...NOW, ...listener })).rejects.toBe(failure);
    expect(work).toHaveBeenCalledTimes(when === "started" ? 0 : 1);
    expect(await election.leader()).toBeNull();
  });

  test("keeps waiting while an operator has paused the election", async () => {
    const holdfast = scene.another();
    await holdfast.pause(scene.name, { kind: "election", label: "maintenance", by: "ana" });
    const leading = lead(holdfast.election(scene.name), () => "led", NOW);
    await vi.waitFor(
      async () => expect((await holdfast.election(scene.name).inspect()).waiterCount).toBeGreaterThan(0),
      eventually,
    );
    await holdfast.resume(scene.name, { kind: "election", by: "ana" });
    expect(await leading).toBe("led");
  });

  test("can campaign only once per Holdfast at a time", async () => {
    const holdfast = scene.another();
    const running = held<number>();
    const first = lead(holdfast.election(scene.name), running.work, NOW);
    await expect(lead(holdfast.election(scene.name), () => {})).rejects.toThrow("a Holdfast can be only one candidate");
    await running.began;
    running.end(1);
    await first;
    expect(await lead(holdfast.election(scene.name), () => 2, NOW)).toBe(2);
  });
});

describe("with rejoin", () => {
  test("a random delay precedes each campaign: the first, after a loss, and after returned work", async () => {
    const delayMaxMs = 3_600_000;
    let delays = 0;
    const runtime: Runtime = {
      ...systemRuntime,
      random: () => 0.5,
      startTimer: (callback, delayMs, keepAlive) => {
        const isDelay = delayMs === delayMaxMs / 2;
        if (isDelay) delays += 1;
        return systemRuntime.startTimer(callback, isDelay ? 0 : delayMs, keepAlive);
      },
    };
    const client = new Redis({ port: scene.server.port });
    const holdfast = createHoldfastOn(runtime, { redis: client, commandTimeoutMs: 5_000 });
    const election = holdfast.election(scene.name);
    const before: number[] = [];
    await lead(
      election,
      async (leadership) => {
        before.push(delays);
        if (before.length === 1) await election.forceRelease({ owner: leadership.owner });
        if (before.length === 1) await vi.waitFor(() => expect(leadership.signal.aborted).toBe(true), eventually);
        if (before.length === 3) void election.resign();
      },
      { rejoin: true, delayMaxMs },
    );
    expect(before).toEqual([1, 2, 3]);
    await holdfast.close();
    client.disconnect();
  });

  test("a lease that is lost during an abort causes no error if the work reports the loss", async () => {
    const election = scene.another().election(scene.name);
    const stop = new AbortController();
    const ends: TermEnd[] = [];
    const running = held<never>();
    const leading = lead(election, running.work, {
      rejoin: true,
      signal: stop.signal,
      stopped: (_, end) => void ends.push(end),
      ...NOW,
    });
    const leadership = await running.began;
    stop.abort();
    await election.forceRelease({ owner: leadership.owner });
    await vi.waitFor(() => expect(() => leadership.assertHeld()).toThrow(LeaseLostError), eventually);
    running.end(Promise.reject(thrownBy(() => leadership.assertHeld())));
    expect(await leading).toBeUndefined();
    expect(ends).toEqual(["lost"]);
  });

  test("work that outlasts the grace of a closing Holdfast and reports the loss causes no error", async () => {
    const holdfast = scene.another();
    const running = held<never>();
    const leading = lead(holdfast.election(scene.name), running.work, { rejoin: true, ...NOW });
    const leadership = await running.began;
    expect(leadership.signal.aborted).toBe(false);
    await holdfast.close({ graceMs: 0 });
    running.end(Promise.reject(thrownBy(() => leadership.assertHeld())));
    expect(await leading).toBeUndefined();
  });

  test("200 successive terms rise, never overlap, and call `started` and `stopped` in pairs", async () => {
    const terms: number[] = [];
    const told: string[] = [];
    const stop = new AbortController();
    let leading = 0;
    const candidates = Array.from({ length: 4 }, () => {
      const election = scene.another().election(scene.name);
      const work = async ({ term }: Leadership): Promise<void> => {
        leading += 1;
        expect(leading).toBe(1);
        terms.push(term);
        await pause(0);
        leading -= 1;
        if (terms.length >= 200) stop.abort();
      };
      const started = ({ term }: Leadership): void => void told.push(`+${term}`);
      const stopped = ({ term }: Leadership): void => void told.push(`-${term}`);
      return lead(election, work, { rejoin: true, signal: stop.signal, started, stopped, ...NOW });
    });
    await Promise.all(candidates);
    expect(terms.length).toBeGreaterThanOrEqual(200);
    expect(terms).toEqual([...new Set(terms)].toSorted((a, b) => a - b));
    expect(told.toSorted()).toEqual(terms.flatMap((term) => [`+${term}`, `-${term}`]).toSorted());
    const last = await scene.another().election(scene.name).campaign("last");
    expect(await scene.another().election(scene.name).leader()).toMatchObject({ transitions: terms.length });
    await last.release();
  }, 60_000);

  test("lead waits for work that ignores its loss, runs no second callback, and reports it in health", async () => {
    const holdfast = scene.another();
    const election = holdfast.election(scene.name);
    const rival = scene.another().election(scene.name);
    const ends: TermEnd[] = [];
    let running = 0;
    let most = 0;
    const works = [held<void>(), held<void>()];
    const stop = new AbortController();
    let calls = 0;
    const leading = lead(
      election,
      async (leadership) => {
        running += 1;
        most = Math.max(most, running);
        await works[calls++]?.work(leadership);
        running -= 1;
      },
      { rejoin: true, signal: stop.signal, stopped: (_, end) => void ends.push(end), ...NOW },
    );
    const first = await (works[0] as (typeof works)[0]).began;
    expect(election.health(20_000)).toMatchObject({ ok: true, role: "leader" });
    const next = rival.campaign("rival", { waitMs: Infinity });
    await vi.waitFor(async () => expect((await rival.inspect()).waiterCount).toBe(1), eventually);
    await rival.forceRelease({ owner: first.owner });
    const leadership = await next;
    await vi.waitFor(() => expect(election.health(0)).toMatchObject({ ok: false, role: "follower" }), eventually);
    expect(holdfast.election(scene.name).health(0).ageMs).toBeGreaterThan(0);
    await leadership.release();
    // The election is free. The candidate does not join because its work still runs.
    expect((await rival.inspect()).waiterCount).toBe(0);
    expect([calls, ends]).toEqual([1, []]);
    works[0]?.end();
    const second = await (works[1] as (typeof works)[0]).began;
    expect(second.term).toBeGreaterThan(leadership.term);
    expect(ends).toEqual(["lost"]);
    stop.abort();
    works[1]?.end();
    await leading;
    expect([most, ends]).toEqual([1, ["lost", "aborted"]]);
    expect(election.health(0)).toEqual({ ok: true, role: "follower", ageMs: 0 });
  });
});

test("calls without a leadership refer to the one of lead, on any election object", async () => {
  const holdfast = scene.another();
  await expect(holdfast.election(scene.name).proclaim("x")).rejects.toThrow("leadership must be from the election");
  expect(await holdfast.election(scene.name).resign()).toBeUndefined();
  const leading = lead(
    holdfast.election(scene.name),
    async ({ signal }) => {
      await holdfast.election(scene.name).proclaim("10.0.0.9");
      const { value, pid, transitions } = (await holdfast.election(scene.name).leader()) ?? {};
      void holdfast.election(scene.name).resign();
      return { value, pid, transitions, aborted: signal.aborted };
    },
    NOW,
  );
  expect(await leading).toEqual({ value: "10.0.0.9", pid: process.pid, transitions: 0, aborted: true });
});

test("health also reports a leadership that was acquired without lead", async () => {
  const election = scene.another().election(scene.name);
  expect(election.health(0)).toEqual({ ok: true, role: "follower", ageMs: 0 });
  const leadership = await election.campaign("x", { leaseMs: 60_000 });
  const { ok, role, ageMs } = election.health(30_000);
  expect([ok, role]).toEqual([true, "leader"]);
  expect(ageMs).toBeGreaterThan(0);
  await leadership.release();
  expect(election.health(0).role).toBe("follower");
});

test("lead works on the embedded store", async () => {
  const holdfast = createHoldfast({ store: embedded() });
  const election = holdfast.election(scene.name);
  const terms: number[] = [];
  const stop = new AbortController();
  await lead(
    election,
    async ({ term }) => {
      terms.push(term);
      expect(await election.leader()).toMatchObject({ term, transitions: terms.length - 1 });
      if (terms.length === 3) stop.abort();
    },
    { rejoin: true, signal: stop.signal, ...NOW },
  );
  expect(terms).toHaveLength(3);
  await holdfast.close();
});

test("every key expires", async () => {
  await lead(scene.another().election(scene.name), () => {}, NOW);
  const keys = await scene.redis.keys(`hf:election:{${scene.name}}*`);
  expect(keys.length).toBeGreaterThan(0);
  for (const key of keys) expect(await scene.redis.pttl(key), key).toBeGreaterThan(0);
});

test.each([
  [{ value: 5 }, "value"],
  [{ leaseMs: 99 }, "leaseMs"],
  [{ delayMaxMs: -1 }, "delayMaxMs"],
  [{ rejoin: 1 }, "rejoin"],
  [{ signal: {} }, "signal"],
  [{ label: 5 }, "label"],
  [{ started: 5 }, "started"],
  [{ stopped: 5 }, "stopped"],
  [{ waitMs: 5 }, "waitMs"],
])("the error for an invalid option names the option: %o", async (options, name) => {
  const election = scene.another().election(scene.name);
  const work = vi.fn();
  await expect(lead(election, work, options as object)).rejects.toThrow(name);
  await expect(lead({} as never, work)).rejects.toThrow("election must be the result of holdfast.election");
  await expect(lead(election, 5 as never)).rejects.toThrow("work must be a function");
  expect(() => election.health(-1)).toThrow("withinMs");
  expect(work).not.toHaveBeenCalled();
  expect(await scene.redis.exists(`hf:election:{${scene.name}}`)).toBe(0);
});
