/** Events in order, one at a time for each object, each once: on a real server. */
import { describe, expect, test, vi } from "vitest";
import { embedded } from "../../../embedded/src/index.js";
import { recipesKeyedCheck, recipesKeyedRecord } from "../../src/generated/recipes-scripts.js";
import { createHoldfast, type Holdfast, type Lease } from "../../src/index.js";
import { type KeyedOptions, type KeyedResult, keyed, UnrecordedError } from "../../src/recipes/index.js";
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
  test("is applied once, however often it is delivered", async () => {
    const work = vi.fn(() => "applied");
    expect(await run(work, { eventId: "e1" })).toEqual({ outcome: "ran", value: "applied" });
    expect(await run(work, { eventId: "e1" }, scene.other)).toEqual({ outcome: "duplicate" });
    expect(await run(work, { eventId: "e2" }, scene.other)).toMatchObject({ outcome: "ran" });
    expect(work).toHaveBeenCalledTimes(2);
  });

  test("that is delivered again while it is applied waits, and is a duplicate then", async () => {
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

  test("whose first delivery fails is applied by the next, which waited behind it", async () => {
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

  test("is outdated after a later one, and of two with the same place both are applied", async () => {
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

  test("of one object says nothing about another's, nor one group's about another", async () => {
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

  test("is refused with who has the object, when it was not its turn in time", async () => {
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

  test("is refused while as many wait as may, and not after", async () => {
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

  test("is refused while somebody has paused its object", async () => {
    await scene.other.pause(`keyed/test/${scene.name}`, { by: "ana", label: "moving" });
    expect(await run(() => 1)).toMatchObject({ outcome: "refused", reason: "paused", label: "moving" });
    await scene.other.resume(`keyed/test/${scene.name}`, { by: "ana" });
    expect(await run(() => 1)).toMatchObject({ outcome: "ran" });
  });

  test("is refused by a server that does not answer", async () => {
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

test("events of many callers are applied one at a time, in the order of their arrival", async () => {
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

describe("replies that are lost", () => {
  test.each(["mutex/acquire", "recipes/keyed/check", "recipes/keyed/record", "mutex/release"])(
    "%s counts once",
    async (script) => {
      const { holdfast, proxy } = await scene.reach();
      await run(() => 0, {}, holdfast);
      const all = {
        ...(await import("../../src/generated/scripts.js")),
        ...(await import("../../src/generated/recipes-scripts.js")),
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

  test("whoever never hears whether it was recorded is told so, with what the work has found", async () => {
    const { holdfast, proxy } = await scene.reach();
    const ending = held<string>();
    const running = run(ending.work, { eventId: "e1" }, holdfast);
    await ending.began;
    proxy.refuse(true);
    proxy.cutAll();
    ending.end("applied");
    const error: unknown = await running.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UnrecordedError);
    expect(error).toMatchObject({ value: "applied", code: "ERR_LOCK_STORE" });
    proxy.refuse(false);
  });

  test("what was recorded is recorded, although the next one has recorded its own before that is heard", async () => {
    const { holdfast, proxy } = await scene.reach({ commandTimeoutMs: 20_000 });
    await run(() => 0, {}, holdfast);
    const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${recipesKeyedRecord.sha1}`, "i"));
    const first = run(() => "first", { eventId: "e1", sequence: 1 }, holdfast);
    await struck;
    proxy.refuse(true);
    // As when its lease has ended meanwhile.
    await scene.redis.del(lock());
    expect(await run(() => "next", { eventId: "e2", sequence: 2 }, scene.other)).toMatchObject({ outcome: "ran" });
    proxy.refuse(false);
    expect(await first).toEqual({ outcome: "ran", value: "first" });
  });

  test("a turn whose message was lost is found by asking", async () => {
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
    // The grant, and maybe an echo by which the waiter checks its connection.
    expect(proxy.counts.droppedMessages).toBeGreaterThanOrEqual(1);
  });
});

test("an object that was lost before the answer came is not worked on", async () => {
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

test("an object that a person took away is lost for that reason, and with those words", async () => {
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

describe("a server that forgets", () => {
  test("what is applied meanwhile is not recorded, and its caller is told", async () => {
    const first = held<string>();
    const running = run(first.work, { eventId: "e1" });
    await first.began;
    await scene.redis.del(lock(), `${lock()}:fence`);
    first.end("applied");
    await expect(running).rejects.toMatchObject({ name: "WorkLostError", reason: "server-lost", value: "applied" });
    expect(await run(() => "again", { eventId: "e1" })).toEqual({ outcome: "ran", value: "again" });
  });

  test("an object that somebody else got meanwhile is that one's", async () => {
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

  test("leaves at once, before it asks", async () => {
    await expect(run(() => 1, { signal: AbortSignal.abort(why) })).rejects.toBe(why);
    await grantedNobody();
  });

  test("leaves at once, while it is asking", async () => {
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

  test("leaves at once, while it waits, and those behind it are served", async () => {
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

  test("has no say any more when its event is being applied", async () => {
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

describe("nothing is left", () => {
  test("what was applied is forgotten after `keepMs`, and may be applied again", async () => {
    const options = { eventId: "e1", sequence: 5, keepMs: 100 };
    expect(await run(() => 1, options)).toMatchObject({ outcome: "ran" });
    await vi.waitFor(
      async () => expect(await scene.redis.exists(applied(), `${applied()}:event:e1`)).toBe(0),
      eventually,
    );
    expect(await run(() => 2, { ...options, sequence: 4 })).toMatchObject({ outcome: "ran" });
  });

  test("a hundred events of many objects leave keys that all end, and one for each event", async () => {
    const all = Array.from({ length: 100 }, (_, at) =>
      keyed(scene.other, "test").run(`${scene.name}:${at % 10}`, () => at, { eventId: `e/${at}`, sequence: at }),
    );
    for (const { outcome } of await Promise.all(all)) expect(["ran", "outdated"]).toContain(outcome);
    const keys = await scene.redis.keys(`*${scene.name}:*`);
    expect(keys.filter((key) => key.includes(":event:")).length).toBeLessThanOrEqual(100);
    expect(keys.length).toBeLessThanOrEqual(100 + 3 * 10);
    for (const key of keys) expect(await scene.redis.pttl(key), key).toBeGreaterThan(0);
  });

  test("of an event without an id there is no note of its own", async () => {
    await run(() => 1, { sequence: 5 });
    expect(await scene.redis.keys(`${applied().replace(/[{}]/g, "?")}*`)).toEqual([applied()]);
  });

  test("a shorter `keepMs` does not shorten what another caller has asked for", async () => {
    await run(() => 1, { sequence: 5, keepMs: 1_000_000 });
    await run(() => 2, { sequence: 6, keepMs: 1_000 });
    expect(await scene.redis.pttl(applied())).toBeGreaterThan(500_000);
  });
});

test("the embedded store gives the same answers", async () => {
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

test("over several independent servers it is refused for what it is", async () => {
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
])("a wrong option is refused by its name: %o", async (options, name) => {
  const work = vi.fn();
  await expect(run(work, options as object)).rejects.toThrow(name);
  await expect(keyed(scene.holdfast, "test").run("", work)).rejects.toThrow("object must be 1 to 255 bytes");
  await expect(run(undefined as never)).rejects.toThrow("work must be a function");
  expect(() => keyed(scene.holdfast, "x".repeat(65))).toThrow("group must be 1 to 64 bytes");
  expect(() => keyed({} as Holdfast, "x")).toThrow("holdfast");
  expect(work).not.toHaveBeenCalled();
});
