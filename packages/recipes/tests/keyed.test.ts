/** `keyed` on a real server: events of each object run in order, one at a time, and once each. */

import { embedded } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, type Lease } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { recipesKeyedCheck, recipesKeyedRecord } from "../src/generated/scripts.js";
import { type KeyedOptions, type KeyedResult, keyed, UnrecordedError } from "../src/index.js";
import { eventually, held, useQueueScene } from "./queue-scene.js";

const scene = useQueueScene();

function run<Value>(
  work: (lease: Lease) => Value | Promise<Value>,
  options: KeyedOptions = {},
  holdfast: Holdfast = scene.holdfast,
): Promise<KeyedResult<Value>> {
  return keyed(holdfast, "test").run(scene.name, work, options);
}

const lock = (): string => `hf:mutex:{keyed/test/${scene.name}}`;
const applied = (): string => `hf:keyed:{keyed/test/${scene.name}}`;

async function queued(count: number): Promise<void> {
  await vi.waitFor(async () => expect(await scene.redis.zcard(`${lock()}:queue`)).toBe(count), eventually);
}

async function grantedNobody(): Promise<void> {
  await vi.waitFor(async () => expect(await scene.redis.exists(lock(), `${lock()}:queue`)).toBe(0), eventually);
}

describe("an event", () => {
  test("is applied once, even if it is delivered several times", async () => {
    const work = vi.fn(() => "applied");
    expect(await run(work, { eventId: "e1" })).toEqual({ outcome: "ran", value: "applied" });
    expect(await run(work, { eventId: "e1" }, scene.other)).toEqual({ outcome: "duplicate" });
    expect(await run(work, { eventId: "e2" }, scene.other)).toMatchObject({ outcome: "ran" });
    expect(work).toHaveBeenCalledTimes(2);
  });

  test("that is delivered again while it is applied waits and is then a duplicate", async () => {
    const first = held<string>();
    const running = run(first.work, { eventId: "e1" });
    await first.began;
    const again = vi.fn();
    const second = run(again, { eventId: "e1" }, scene.other);
    await queued(1);
    first.end("applied");
    expect(await running).toEqual({ outcome: "ran", value: "applied" });
    expect(await second).toEqual({ outcome: "duplicate" });
    expect(again).not.toHaveBeenCalled();
  });

  test("whose first delivery fails is applied by the next delivery in the queue", async () => {
    const first = held<string>();
    const running = run(first.work, { eventId: "e1", sequence: 7 });
    await first.began;
    const second = run(() => "second", { eventId: "e1", sequence: 7 }, scene.other);
    await queued(1);
    const error = new Error("no such customer");
    first.end(Promise.reject(error));
    await expect(running).rejects.toBe(error);
    expect(await second).toEqual({ outcome: "ran", value: "second" });
    expect(await run(() => "third", { eventId: "e1" })).toEqual({ outcome: "duplicate" });
  });

  test("is outdated after a higher sequence, but equal sequences are both applied", async () => {
    expect(await run(() => 1, { eventId: "e1", sequence: 100 })).toMatchObject({ outcome: "ran" });
    expect(await run(() => 2, { eventId: "e2", sequence: 99 })).toEqual({ outcome: "outdated", lastSequence: 100 });
    expect(await run(() => 3, { eventId: "e3", sequence: 100 })).toMatchObject({ outcome: "ran" });
    expect(await run(() => 4, { eventId: "e1", sequence: 99 })).toEqual({ outcome: "duplicate" });
    expect(await run(() => 5, { eventId: "e5" }), "without a place").toMatchObject({ outcome: "ran" });
    expect(await run(() => 6, { sequence: 99 }), "without an id").toEqual({ outcome: "outdated", lastSequence: 100 });
    expect(await run(() => 7, { sequence: Number.MAX_SAFE_INTEGER })).toMatchObject({ outcome: "ran" });
    expect(await run(() => 8, { sequence: -1 })).toEqual({
      outcome: "outdated",
      lastSequence: Number.MAX_SAFE_INTEGER,
    });
  });

  test("does not affect other objects or other groups", async () => {
    const options = { eventId: "e1", sequence: 5 };
    const first = held<number>();
    const running = keyed(scene.holdfast, "a/b").run("c", first.work, options);
    await first.began;
    for (const [group, object] of [
      ["a", "b/c"],
      ["a/b", "d"],
      ["a%2Fb", "c"],
    ] as const) {
      expect(await keyed(scene.other, group).run(object, () => 1, options)).toEqual({ outcome: "ran", value: 1 });
    }
    first.end(1);
    await running;
  });

  test("is refused with the current holder if `waitMs` runs out", async () => {
    const first = held<number>();
    const running = run(first.work, { label: "refund" });
    await first.began;
    const work = vi.fn();
    expect(await run(work, { waitMs: 20 }, scene.other)).toMatchObject({
      outcome: "refused",
      reason: "held",
      label: "refund",
      holder: { pid: process.pid, clientName: "first" },
    });
    first.end(1);
    await running;
    expect(work).not.toHaveBeenCalled();
  });

  test("is refused while `waitersMax` events wait, and accepted after that", async () => {
    const first = held<number>();
    const running = run(first.work, { waitersMax: 2 });
    await first.began;
    const waiting = [run(() => 2, { waitersMax: 2 }), run(() => 3, { waitersMax: 2 })];
    expect(await run(() => 4, { waitersMax: 2 })).toEqual({ outcome: "refused", reason: "full" });
    const elsewhere = keyed(scene.holdfast, "test").run(`${scene.name}:2`, () => 5, { waitersMax: 2 });
    expect(await elsewhere, "another object").toMatchObject({ outcome: "ran" });
    first.end(1);
    await running;
    expect((await Promise.all(waiting)).map(({ outcome }) => outcome)).toEqual(["ran", "ran"]);
    expect(await run(() => 6, { waitersMax: 1 })).toEqual({ outcome: "ran", value: 6 });
  });

  test("is refused while its object is paused", async () => {
    await scene.other.pause(`keyed/test/${scene.name}`, { by: "ana", label: "moving" });
    expect(await run(() => 1)).toMatchObject({ outcome: "refused", reason: "paused", label: "moving" });
    await scene.other.resume(`keyed/test/${scene.name}`, { by: "ana" });
    expect(await run(() => 1)).toMatchObject({ outcome: "ran" });
  });

  test("is refused if the server does not reply", async () => {
    const { holdfast, proxy } = await scene.reach();
    expect(await run(() => 1, {}, holdfast)).toMatchObject({ outcome: "ran" });
    proxy.refuse(true);
    proxy.cutAll();
    const work = vi.fn();
    expect(await run(work, { waitMs: 100 }, holdfast)).toMatchObject({ outcome: "refused", reason: "unavailable" });
    expect(work).not.toHaveBeenCalled();
    proxy.refuse(false);
  });
});

test("events of many callers are applied one at a time, in order of arrival", async () => {
  const first = held<void>();
  const order: number[] = [];
  let inside = 0;
  const running = run(first.work);
  await first.began;
  const all: Promise<unknown>[] = [];
  for (let at = 0; at < 20; at += 1) {
    const work = async (): Promise<void> => {
      inside += 1;
      expect(inside).toBe(1);
      await new Promise(setImmediate);
      order.push(at);
      inside -= 1;
    };
    all.push(run(work, {}, at % 2 === 0 ? scene.holdfast : scene.other));
    await queued(at + 1);
  }
  first.end();
  await Promise.all([running, ...all]);
  expect(order).toEqual(Array.from({ length: 20 }, (_, at) => at));
});

describe("lost replies", () => {
  test.each(["mutex/acquire", "recipes/keyed/check", "recipes/keyed/record", "mutex/release"])(
    "%s takes effect once",
    async (script) => {
      const { holdfast, proxy } = await scene.reach();
      await run(() => 0, {}, holdfast);
      const all = {
        ...(await import("../../holdfast/src/generated/scripts.js")),
        ...(await import("../src/generated/scripts.js")),
      };
      const { sha1 } = Object.values(all).find(({ name }) => name === script) ?? { sha1: "none" };
      const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${sha1}`, "i"));
      const work = vi.fn(() => "applied");
      const options = { eventId: "e1", sequence: 1 };
      expect(await run(work, options, holdfast)).toEqual({ outcome: "ran", value: "applied" });
      await struck;
      expect(await run(work, options, scene.other)).toEqual({ outcome: "duplicate" });
      expect(work).toHaveBeenCalledTimes(1);
    },
  );

  test("without a reply to the record request, the caller gets an UnrecordedError with its result", async () => {
    const { holdfast, proxy } = await scene.reach();
    const ending = held<string>();
    const running = run(ending.work, { eventId: "e1" }, holdfast);
    await ending.began;
    proxy.refuse(true);
    proxy.cutAll();
    ending.end("applied");
    const error: unknown = await running.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnrecordedError);
    const message = expect.stringMatching(/^The work for ".+" ended, but its result (?:may not be|was not) recorded/);
    expect(error).toMatchObject({ value: "applied", code: "ERR_LOCK_STORE", message });
    proxy.refuse(false);
  });

  test("a recorded event stays recorded even if the next one is recorded before the reply", async () => {
    const { holdfast, proxy } = await scene.reach({ commandTimeoutMs: 20_000 });
    await run(() => 0, {}, holdfast);
    const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${recipesKeyedRecord.sha1}`, "i"));
    const first = run(() => "first", { eventId: "e1", sequence: 1 }, holdfast);
    await struck;
    proxy.refuse(true);
    // Simulates a lease that ended in the meantime.
    await scene.redis.del(lock());
    expect(await run(() => "next", { eventId: "e2", sequence: 2 }, scene.other)).toMatchObject({ outcome: "ran" });
    proxy.refuse(false);
    expect(await first).toEqual({ outcome: "ran", value: "first" });
  });

  test("a waiter whose grant message is lost finds its turn by a re-check", async () => {
    const { holdfast, proxy } = await scene.reach();
    await run(() => 0, {}, holdfast);
    const first = held<void>();
    const running = run(first.work);
    await first.began;
    const second = run(() => 2, { waitMs: Infinity }, holdfast);
    await queued(1);
    proxy.dropMessages(true);
    first.end();
    await running;
    expect(await second).toEqual({ outcome: "ran", value: 2 });
    // The grant, and possibly an echo with which the waiter checks its connection.
    expect(proxy.counts.droppedMessages).toBeGreaterThanOrEqual(1);
  });
});

test("work does not start if the lease expires before the reply", async () => {
  const { holdfast, proxy } = await scene.reach();
  await run(() => 0, {}, holdfast);
  const asking = proxy.hold(new RegExp(`^evalsha ${recipesKeyedCheck.sha1}`, "i"));
  const work = vi.fn();
  const refused = run(work, { leaseMs: 300 }, holdfast);
  await asking.reached;
  await grantedNobody();
  asking.release();
  expect(await refused).toMatchObject({ outcome: "refused", reason: "unavailable", error: { reason: "expired" } });
  expect(work).not.toHaveBeenCalled();
});

test("a force-released object is reported with the operator and the reason", async () => {
  const forced = { by: "ana", reason: "stuck" };
  const running = run(
    async (lease) => {
      const aborted = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      await scene.other.mutex(`keyed/test/${scene.name}`).forceRelease({ token: lease.token, ...forced });
      await aborted;
      return "applied";
    },
    { eventId: "e1" },
  );
  await expect(running).rejects.toMatchObject({
    name: "WorkLostError",
    reason: "force-released",
    forced,
    value: "applied",
  });
});

describe("a server that loses its data", () => {
  test("does not record the running event, and its caller gets a WorkLostError", async () => {
    const first = held<string>();
    const running = run(first.work, { eventId: "e1" });
    await first.began;
    await scene.redis.del(lock(), `${lock()}:fence`);
    first.end("applied");
    await expect(running).rejects.toMatchObject({ name: "WorkLostError", reason: "server-lost", value: "applied" });
    expect(await run(() => "again", { eventId: "e1" })).toEqual({ outcome: "ran", value: "again" });
  });

  test("leaves the object to the next holder that got it", async () => {
    const first = held<string>();
    const running = run(first.work, { eventId: "e1" });
    await first.began;
    await scene.redis.del(lock());
    const second = held<string>();
    const next = run(second.work, { eventId: "e1" }, scene.other);
    await second.began;
    first.end("late");
    await expect(running).rejects.toMatchObject({ name: "WorkLostError", value: "late" });
    second.end("second");
    expect(await next, "not a duplicate of what was not recorded").toEqual({ outcome: "ran", value: "second" });
    expect(await run(() => 3, { eventId: "e1" })).toEqual({ outcome: "duplicate" });
  });
});

describe("a caller that gives up", () => {
  const why = new Error("client gone");

  test("before its request leaves immediately", async () => {
    await expect(run(() => 1, { signal: AbortSignal.abort(why) })).rejects.toBe(why);
    await grantedNobody();
  });

  test("during its request leaves immediately", async () => {
    const { holdfast, proxy } = await scene.reach();
    await keyed(holdfast, "test").run("warm", () => {});
    const asking = proxy.hold((words) => words.includes(lock()));
    const controller = new AbortController();
    const work = vi.fn();
    const leaving = run(work, { signal: controller.signal }, holdfast);
    await asking.reached;
    controller.abort(why);
    await expect(leaving).rejects.toBe(why);
    asking.release();
    await grantedNobody();
    expect(work).not.toHaveBeenCalled();
  });

  test("while it waits leaves immediately, and later waiters are served", async () => {
    const first = held<void>();
    const running = run(first.work);
    await first.began;
    const controller = new AbortController();
    const leaving = run(() => 2, { signal: controller.signal, waitersMax: 2 }, scene.other);
    await queued(1);
    const behind = run(() => 3, { waitersMax: 2 }, scene.other);
    await queued(2);
    controller.abort(why);
    await expect(leaving).rejects.toBe(why);
    await queued(1);
    first.end();
    await running;
    expect(await behind).toEqual({ outcome: "ran", value: 3 });
  });

  test("while its event is applied does not stop it", async () => {
    const { holdfast, proxy } = await scene.reach();
    await run(() => 0, {}, holdfast);
    for (const script of ["check", "record"]) {
      const controller = new AbortController();
      const sha1 = script === "check" ? recipesKeyedCheck.sha1 : recipesKeyedRecord.sha1;
      const asking = proxy.hold(new RegExp(`^evalsha ${sha1}`, "i"));
      const running = run(() => script, { signal: controller.signal, eventId: script }, holdfast);
      await asking.reached;
      controller.abort(why);
      asking.release();
      expect(await running).toEqual({ outcome: "ran", value: script });
    }
    await grantedNobody();
  });
});

describe("the records of applied events", () => {
  test("are removed after `keepMs`, so that an event can be applied again", async () => {
    const options = { eventId: "e1", sequence: 5, keepMs: 100 };
    expect(await run(() => 1, options)).toMatchObject({ outcome: "ran" });
    await vi.waitFor(
      async () => expect(await scene.redis.exists(applied(), `${applied()}:event:e1`)).toBe(0),
      eventually,
    );
    expect(await run(() => 2, { ...options, sequence: 4 })).toMatchObject({ outcome: "ran" });
  });

  test("are one expiring key per event and a few per object", async () => {
    const all = Array.from({ length: 100 }, (_, at) =>
      keyed(scene.other, "test").run(`${scene.name}:${at % 10}`, () => at, { eventId: `e/${at}`, sequence: at }),
    );
    for (const { outcome } of await Promise.all(all)) expect(["ran", "outdated"]).toContain(outcome);
    const keys = await scene.redis.keys(`*${scene.name}:*`);
    expect(keys.filter((key) => key.includes(":event:")).length).toBeLessThanOrEqual(100);
    expect(keys.length).toBeLessThanOrEqual(100 + 3 * 10);
    for (const key of keys) expect(await scene.redis.pttl(key), key).toBeGreaterThan(0);
  });

  test("contain no separate key for an event without an id", async () => {
    await run(() => 1, { sequence: 5 });
    expect(await scene.redis.keys(`${applied().replace(/[{}]/g, "?")}*`)).toEqual([applied()]);
  });

  test("are kept for the longest `keepMs` of all callers", async () => {
    await run(() => 1, { sequence: 5, keepMs: 1_000_000 });
    await run(() => 2, { sequence: 6, keepMs: 1_000 });
    expect(await scene.redis.pttl(applied())).toBeGreaterThan(500_000);
  });
});

test("keyed works the same on the embedded store", async () => {
  const holdfast = createHoldfast({ store: embedded() });
  const { run: apply } = keyed(holdfast, "test");
  const options = { eventId: "é{}/%", sequence: -3 };
  expect(await apply("o}{", () => 1, options)).toEqual({ outcome: "ran", value: 1 });
  expect(await apply("o}{", () => 2, options)).toEqual({ outcome: "duplicate" });
  expect(await apply("o}{", () => 3, { sequence: -4 })).toEqual({ outcome: "outdated", lastSequence: -3 });
  expect(await apply("o}{", () => 4, { eventId: "e2", sequence: -3 })).toEqual({ outcome: "ran", value: 4 });
  await holdfast.close();
  await expect(apply("o}{", () => 5)).rejects.toMatchObject({ name: "ClosedError" });
});

test("keyed on several independent servers is refused with that reason", async () => {
  const holdfast = createHoldfast({ redlock: [embedded(), embedded(), embedded()] });
  expect(() => keyed(holdfast, "test")).toThrow(
    /^"keyed\/test\/" cannot be on several independent servers: it needs one/,
  );
  await holdfast.close();
});

test.each([
  [{ eventId: "" }, "eventId"],
  [{ eventId: 5 }, "eventId"],
  [{ sequence: 0.5 }, "sequence"],
  [{ sequence: 5n }, "sequence"],
  [{ waitersMax: 0 }, "waitersMax"],
  [{ waitMs: -1 }, "waitMs"],
  [{ keepMs: 99 }, "keepMs"],
  [{ leaseMs: 99 }, "leaseMs"],
  [{ maxHoldMs: 0 }, "maxHoldMs"],
  [{ label: 5 }, "label"],
  [{ signal: {} }, "signal"],
  [{ ttl: 5 }, "ttl"],
])("the error for an invalid option names the option: %o", async (options, name) => {
  const work = vi.fn();
  await expect(run(work, options as object)).rejects.toThrow(name);
  await expect(keyed(scene.holdfast, "test").run("", work)).rejects.toThrow("object must be 1 to 255 bytes");
  await expect(run(undefined as never)).rejects.toThrow("work must be a function");
  expect(() => keyed(scene.holdfast, "x".repeat(65))).toThrow("group must be 1 to 64 bytes");
  expect(() => keyed({} as Holdfast, "x")).toThrow("holdfast");
  expect(work).not.toHaveBeenCalled();
});
