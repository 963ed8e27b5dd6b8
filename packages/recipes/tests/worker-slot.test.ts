/** Worker numbers on a real server: assignment, reuse, and the time until which an earlier worker may have used one. */
import { embedded } from "@holdfast/embedded";
import { AcquireTimeoutError, CapacityMismatchError, createHoldfast, type Holdfast, UnsupportedError } from "holdfast";
import { Redis } from "ioredis";
import { describe, expect, test, vi } from "vitest";
import { startSentinel } from "../../../tests/support/redis-sentinel.js";
import { permitsAcquire, permitsRelease } from "../../holdfast/src/generated/scripts.js";
import { recipesWorkerSlotBefore, recipesWorkerSlotKeep } from "../src/generated/scripts.js";
import { SlotsTakenError, type WorkerSlot, workerSlot } from "../src/index.js";
import { aborted, eventually, useLeadScene } from "./lead-scene.js";

const scene = useLeadScene();

function take(holdfast = scene.another(), options: object = {}): Promise<WorkerSlot> {
  return workerSlot(holdfast, scene.name, { count: 3, ...options });
}

/** Milliseconds until the lease of a number ends on the server. */
async function leftMs({ owner }: WorkerSlot): Promise<number> {
  const ends = Number(await scene.redis.zscore(`hf:semaphore:{${scene.name}}:holders`, owner));
  const [seconds, micros] = await scene.redis.time();
  return (ends - (Number(seconds) * 1e6 + Number(micros))) / 1_000;
}

describe("a number", () => {
  test("is the smallest free one, unique, and free again immediately after a release", async () => {
    const holdfast = scene.another();
    const slots = [await take(holdfast), await take(), await take()];
    expect(slots.map(({ number }) => number)).toEqual([0, 1, 2]);
    await slots[1]?.release();
    const next = await take();
    expect(next.number).toBe(1);
    // The earlier worker has recorded until when it used the number.
    expect(next.notBeforeAtMs).toBeGreaterThan(Date.now() - 30_000);
    expect(next.notBeforeAtMs).toBeLessThanOrEqual(Date.now());
    expect(slots[0]?.notBeforeAtMs).toBe(0);
  });

  test("stays reserved for `restMs` after the lease ends", async () => {
    const restMs = 60_000;
    const slot = await take(undefined, { leaseMs: 2_000, restMs });
    // The server keeps the number longer than the lease that its holder sees.
    expect(slot.validForMs()).toBeLessThanOrEqual(2_000);
    expect(await leftMs(slot)).toBeGreaterThan(restMs);
    await slot.extend(3_000);
    expect(slot.validForMs()).toBeGreaterThan(2_000);
    expect(slot.validForMs()).toBeLessThanOrEqual(3_000);
    expect(await leftMs(slot)).toBeGreaterThan(restMs + 2_000);
  });

  test("of a crashed worker is assigned again after its rest, with the end of its possible use", async () => {
    const proxy = await scene.proxy();
    const dead = await take(scene.another(proxy.port), { count: 1, leaseMs: 1_500, restMs: 400 });
    proxy.stall();
    const askedAtMs = performance.now();
    const endsMs = await leftMs(dead);
    const next = await take(undefined, { count: 1, waitMs: 60_000 });
    expect(performance.now() - askedAtMs).toBeGreaterThan(endsMs - 100);
    expect(() => dead.assertHeld()).toThrow("is over");
    expect(next.number).toBe(0);
    // 1.5 s after the last renewal that was sent, and therefore before the rest began.
    expect(next.notBeforeAtMs).toBeLessThan(Date.now() - 300);
    expect(next.notBeforeAtMs).toBeGreaterThan(dead.acquiredAt.getTime());
    proxy.resume();
  });

  test("goes to a waiter immediately after its release, even if only the semaphore script is loaded", async () => {
    const semaphore = scene.another().semaphore(scene.name, { permits: 1 });
    const [holdfast, other] = [scene.another(), scene.another()];
    await scene.redis.script("FLUSH");
    await scene.redis.script("LOAD", permitsRelease.source);
    const slot = await take(holdfast, { count: 1 });
    const waiting = take(other, { count: 1, waitMs: 60_000 });
    await vi.waitFor(async () => expect((await semaphore.inspect()).waiterCount).toBe(1), eventually);
    await slot.release();
    const next = await waiting;
    expect(next.number).toBe(0);
    // This is the time of the release, not the end of the earlier lease.
    expect(next.notBeforeAtMs).toBeLessThanOrEqual(Date.now());
  });

  test("is not used before the time on its last holder's clock, even if that clock is wrong", async () => {
    const [holdfast, other] = [scene.another(), scene.another()];
    const hourMs = 3_600_000;
    const real = Date.now;
    let slot: WorkerSlot;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => real() + hourMs);
    try {
      slot = await take(holdfast, { leaseMs: 60_000 });
      slot.assertHeld();
    } finally {
      clock.mockRestore();
    }
    await slot.release();
    const next = await take(other);
    expect(next.number).toBe(slot.number);
    expect(next.notBeforeAtMs).toBeGreaterThan(Date.now() + hourMs - 60_000);
    // The recorded time never moves back, neither while the number is in use nor after its release.
    const [noted] = (await scene.redis.hget(`hf:worker-slot:{${scene.name}}`, "0"))?.split(" ") ?? [];
    expect(Number(noted)).toBe(next.notBeforeAtMs);
    await next.release();
    expect((await take(other)).notBeforeAtMs).toBe(next.notBeforeAtMs);
  });

  test("is lost for its holder when the server loses its data", async () => {
    const slot = await take(undefined, { leaseMs: 3_000 });
    await scene.redis.del(...(await scene.redis.keys(`hf:semaphore:{${scene.name}}*`)));
    await aborted(slot.signal);
    expect(() => slot.assertHeld()).toThrow("is over");
  });

  test("cannot be exported to another process", async () => {
    const slot = await take();
    expect(() => slot.export()).toThrow(UnsupportedError);
    slot.assertHeld();
  });
});

describe("the number of slots", () => {
  test("limits the workers, and the error for another one lists the holders", async () => {
    const holdfast = scene.another();
    const slots = await Promise.all([0, 1, 2].map(() => take(holdfast, { label: "id maker" })));
    const error = await take(undefined, { waitMs: 0 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SlotsTakenError);
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    const { holders, code, waitMs, message } = error as SlotsTakenError;
    expect(message).toMatch(/^All numbers of ".+" are taken\./);
    expect([code, waitMs]).toEqual(["ERR_LOCK_ACQUIRE_TIMEOUT", 0]);
    expect(new Set(holders.flatMap((holder) => holder.slots))).toEqual(new Set([0, 1, 2]));
    expect(holders.map(({ label, pid }) => [label, pid])).toEqual(slots.map(() => ["id maker", process.pid]));
  });

  test("must be the same for all workers", async () => {
    await take();
    await expect(take(undefined, { count: 4 })).rejects.toThrow(CapacityMismatchError);
  });

  test("can be raised, which serves waiters immediately, or lowered, which assigns no new numbers", async () => {
    const holdfast = scene.another();
    const semaphore = holdfast.semaphore(scene.name, { permits: 3 });
    const slots = await Promise.all([0, 1, 2].map(() => take(holdfast)));
    const waiting = [take(undefined, { waitMs: 60_000 }), take(undefined, { waitMs: 60_000 })];
    await vi.waitFor(async () => expect((await semaphore.inspect()).waiterCount).toBe(2), eventually);
    await semaphore.resize(5);
    const more = await Promise.all(waiting);
    expect(new Set(more.map(({ number }) => number))).toEqual(new Set([3, 4]));

    await semaphore.resize(2);
    const of = (number: number): WorkerSlot | undefined => [...slots, ...more].find((slot) => slot.number === number);
    await of(0)?.release();
    await of(4)?.release();
    // Three numbers are held, and only two are allowed.
    await expect(take(undefined, { waitMs: 0 })).rejects.toThrow(SlotsTakenError);
    of(1)?.assertHeld();
    of(3)?.assertHeld();
    await of(1)?.release();
    await of(2)?.release();
    const last = await take(undefined, { count: 2 });
    expect(last.number).toBe(0);
    // A number above the new count stays valid until its holder releases it.
    of(3)?.assertHeld();
    await expect(take(undefined, { count: 2, waitMs: 0 })).rejects.toThrow(SlotsTakenError);
    await of(3)?.release();
    expect((await take(undefined, { count: 2 })).number).toBe(1);
  });
});

describe("failed requests", () => {
  test.each([
    ["the grant", permitsAcquire],
    ["the first lease", recipesWorkerSlotKeep],
    ["the previous holder", recipesWorkerSlotBefore],
  ])("a lost reply to the request for %s still assigns one number", async (_, { sha1 }) => {
    const proxy = await scene.proxy();
    const holdfast = scene.another(proxy.port);
    await (await workerSlot(holdfast, "warm", { count: 3 })).release();
    const struck = proxy.cutBeforeReply((words) => words[1] === sha1);
    const slot = await take(holdfast);
    await struck;
    expect([slot.number, slot.notBeforeAtMs, proxy.counts.lostReplies]).toEqual([0, 0, 1]);
    const semaphore = scene.another().semaphore(scene.name, { permits: 3 });
    expect(await semaphore.inspect()).toMatchObject({ used: 1, holders: [{ owner: slot.owner }] });
    await slot.release();
    expect(await semaphore.inspect()).toMatchObject({ used: 0 });
  });

  test("a renewal whose reply is lost keeps the number and records no earlier use", async () => {
    const proxy = await scene.proxy();
    const slot = await take(scene.another(proxy.port), { leaseMs: 3_000 });
    await proxy.cutBeforeReply((words) => words[1] === recipesWorkerSlotKeep.sha1);
    const endsAtMs = Date.now() + 3_000;
    await vi.waitFor(() => expect(Date.now() + slot.validForMs()).toBeGreaterThan(endsAtMs), eventually);
    expect(slot.signal.aborted).toBe(false);
    const [, , before] = (await scene.redis.hget(`hf:worker-slot:{${scene.name}}`, "0"))?.split(" ") ?? [];
    expect(before).toBe("0");
  });

  test("a waiter gets a released number even if every message is lost", async () => {
    const proxy = await scene.proxy();
    proxy.dropMessages(true);
    const first = await take(scene.another(proxy.port), { count: 1 });
    const waiting = take(scene.another(proxy.port), { count: 1, waitMs: 60_000 });
    const semaphore = scene.another().semaphore(scene.name, { permits: 1 });
    await vi.waitFor(async () => expect((await semaphore.inspect()).waiterCount).toBe(1), eventually);
    await first.release();
    expect((await waiting).number).toBe(0);
  }, 60_000);

  test.each(["in the queue", "while its grant is under way", "while it asks for the previous holder"])(
    "a worker that gives up %s leaves no number taken",
    async (when) => {
      const proxy = await scene.proxy();
      const holdfast = scene.another(proxy.port);
      await (await workerSlot(holdfast, "warm of one", { count: 1 })).release();
      const first = when === "in the queue" ? await take(undefined, { count: 1 }) : undefined;
      const scripts = {
        "while its grant is under way": permitsAcquire,
        "while it asks for the previous holder": recipesWorkerSlotBefore,
      };
      const script = scripts[when as keyof typeof scripts];
      const hold = script && proxy.hold((words) => words[1] === script.sha1);
      const controller = new AbortController();
      const giving = take(holdfast, { count: 1, signal: controller.signal, waitMs: 60_000 });
      const semaphore = scene.another().semaphore(scene.name, { permits: 1 });
      if (first === undefined) await hold?.reached;
      else await vi.waitFor(async () => expect((await semaphore.inspect()).waiterCount).toBe(1), eventually);
      controller.abort(new Error("never mind"));
      hold?.release();
      const slot = await giving.catch((error: unknown) => error);
      // After the grant, the call may succeed despite the abort. The slot is then released normally.
      if (slot instanceof Error) expect(slot.message).toBe("never mind");
      else await (slot as WorkerSlot).release();
      await first?.release();
      await vi.waitFor(
        async () => expect(await semaphore.inspect()).toMatchObject({ used: 0, waiterCount: 0 }),
        eventually,
      );
    },
  );
});

test("workers keep their numbers when Sentinel replaces the master", {
  timeout: 120_000,
}, async () => {
  const topology = await startSentinel({ downAfterMs: 60_000 });
  const clients = [0, 1].map(
    () => new Redis({ sentinels: [...topology.addresses], name: topology.name, sentinelRetryStrategy: () => 50 }),
  );
  for (const client of clients) client.on("error", () => {});
  const [holdfast, other] = clients.map((redis) => createHoldfast({ redis })) as [Holdfast, Holdfast];
  try {
    const slots = [await take(holdfast), await take(holdfast)];
    const old = await topology.master();
    await topology.failover();
    await vi.waitFor(async () => expect((await topology.master()).id).not.toBe(old.id), eventually);
    for (const slot of slots) await vi.waitFor(() => slot.extend(60_000), eventually);
    const next = await take(other, { waitMs: 90_000 });
    expect([...slots, next].map(({ number }) => number)).toEqual([0, 1, 2]);
    for (const slot of slots) slot.assertHeld();
  } finally {
    await Promise.all([holdfast.close(), other.close()]);
    for (const client of clients) client.disconnect();
    await topology.stop();
  }
});

test("a Holdfast that closes releases its numbers and records until when they were in use", async () => {
  const holdfast = scene.another();
  const slot = await take(holdfast);
  await holdfast.close();
  expect(() => slot.assertHeld()).toThrow("closed");
  const next = await take();
  expect(next.number).toBe(0);
  expect(next.notBeforeAtMs).toBeLessThanOrEqual(Date.now());
  expect(next.notBeforeAtMs).toBeGreaterThan(0);
});

test("a late worker that checks only its signal counts as using its number until it releases it", async () => {
  const proxy = await scene.proxy();
  const slot = await take(scene.another(proxy.port), { leaseMs: 1_500 });
  proxy.stall();
  await aborted(slot.signal);
  // The worker may have generated ids up to this moment without checking its lease.
  const lastMs = Date.now();
  proxy.resume();
  await slot.release().catch(() => {});
  const next = await take();
  expect(next.number).toBe(slot.number);
  expect(next.notBeforeAtMs).toBeGreaterThanOrEqual(lastMs);
});

test("every key expires", async () => {
  await take();
  const keys = await scene.redis.keys(`hf:*{${scene.name}}*`);
  expect(keys).toContain(`hf:worker-slot:{${scene.name}}`);
  for (const key of keys) expect(await scene.redis.pttl(key), key).toBeGreaterThan(0);
});

test("worker slots work on the embedded store", async () => {
  const holdfast = createHoldfast({ store: embedded() });
  const [first, second] = [await take(holdfast), await take(holdfast)];
  await first.release();
  const third = await take(holdfast);
  expect([first.number, second.number, third.number]).toEqual([0, 1, 0]);
  expect(third.notBeforeAtMs).toBeGreaterThan(0);
  await holdfast.close();
});

test("worker slots are not supported on several independent servers", async () => {
  const holdfast = createHoldfast({ redlock: [embedded(), embedded(), embedded()] });
  await expect(take(holdfast)).rejects.toThrow(UnsupportedError);
  await holdfast.close();
});

test("the error for an invalid Holdfast names the argument", async () => {
  for (const wrong of [undefined, null, {}, "redis"]) {
    await expect(workerSlot(wrong as never, "x", { count: 1 })).rejects.toThrow(
      "holdfast must be the result of createHoldfast",
    );
  }
});

test.each([
  [{ count: 0 }, "count"],
  [{ leaseMs: 99 }, "leaseMs"],
  [{ restMs: -1 }, "restMs"],
  [{ waitMs: -1 }, "waitMs"],
  [{ signal: 5 }, "signal"],
  [{ label: 5 }, "label"],
  [{ permits: 5 }, "permits"],
])("the error for an invalid option names the option: %o", async (options, name) => {
  await expect(take(undefined, options)).rejects.toThrow(name);
  expect(await scene.redis.exists(`hf:semaphore:{${scene.name}}`)).toBe(0);
});
