/** `coalesce` on a real server. */

import { embedded } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, LeaseLostError } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import * as scripts from "../src/generated/scripts.js";
import {
  CoalesceJoinError,
  type CoalesceLease,
  type CoalesceOptions,
  type CoalesceResult,
  coalesce,
} from "../src/index.js";
import { eventually, held, useQueueScene } from "./queue-scene.js";

const scene = useQueueScene();

function run<Value>(
  work: (lease: CoalesceLease) => Value | Promise<Value>,
  options: CoalesceOptions = {},
  holdfast: Holdfast = scene.holdfast,
): Promise<CoalesceResult<Value>> {
  return coalesce(holdfast, scene.name, work, options);
}

const key = (suffix = ""): string => `hf:coalesce:{${scene.name}}${suffix}`;

async function waiting(count: number, set: "waiting" | "joining" = "waiting"): Promise<void> {
  await vi.waitFor(async () => expect(await scene.redis.zcard(key(`:${set}`))).toBe(count), eventually);
}

async function free(): Promise<void> {
  const keys = [key(), key(":waiting"), key(":joining")];
  await vi.waitFor(async () => expect(await scene.redis.exists(...keys)).toBe(0), eventually);
}

/** Queues calls one after the other. All but the first two come from another client. */
async function line(works: readonly (() => unknown)[], options: CoalesceOptions = {}): Promise<Promise<unknown>[]> {
  const set = options.mode === "join" ? "joining" : "waiting";
  const calls: Promise<unknown>[] = [];
  for (const [at, work] of works.entries()) {
    calls.push(run(work, options, at < 2 ? scene.holdfast : scene.other));
    await waiting(at + 1, set);
  }
  return calls;
}

async function pending(promises: readonly Promise<unknown>[]): Promise<boolean> {
  const open = Symbol("open");
  await scene.redis.ping();
  const all = await Promise.all(promises.map((each) => Promise.race([each, Promise.resolve(open)])));
  return all.every((each) => each === open);
}

describe("calls that arrive during a run", () => {
  test("wait for its end; then the newest runs and supersedes the others", async () => {
    const first = held<string>();
    const running = run(first.work);
    await first.began;
    const older = vi.fn();
    const newest = held<string>();
    const calls = await line([older, older, older, newest.work]);
    expect(await pending(calls)).toBe(true);
    first.end("first");
    expect(await running).toEqual({ outcome: "ran", value: "first" });
    await newest.began;
    const holder = await scene.redis.get(key());
    for (const superseded of await Promise.all(calls.slice(0, 3))) {
      expect(superseded).toEqual({
        outcome: "superseded",
        by: expect.objectContaining({ owner: holder, pid: process.pid, clientName: "second" }),
      });
    }
    newest.end("newest");
    expect(await calls[3]).toEqual({ outcome: "ran", value: "newest" });
    expect(older).not.toHaveBeenCalled();
    await free();
  });

  test("need only one more run for a hundred calls", async () => {
    const first = held<void>();
    const running = run(first.work);
    await first.began;
    const work = vi.fn();
    const calls = Array.from({ length: 100 }, (_, at) => run(work, {}, at % 2 === 0 ? scene.holdfast : scene.other));
    await waiting(100);
    first.end();
    const outcomes = (await Promise.all([running, ...calls])).map(({ outcome }) => outcome);
    expect(work).toHaveBeenCalledTimes(1);
    expect(outcomes.filter((outcome) => outcome === "ran")).toHaveLength(2);
    expect(outcomes.filter((outcome) => outcome === "superseded")).toHaveLength(99);
    await free();
  });

  test("let the next newest run if the newest gives up", async () => {
    const first = held<void>();
    const running = run(first.work);
    await first.began;
    const controller = new AbortController();
    const [oldest, second] = await line([() => 1, () => 2]);
    const leaving = run(() => 3, { signal: controller.signal }, scene.other);
    await waiting(3);
    const why = new Error("not needed any more");
    controller.abort(why);
    await expect(leaving).rejects.toBe(why);
    first.end();
    await running;
    expect(await second).toEqual({ outcome: "ran", value: 2 });
    expect(await oldest).toMatchObject({ outcome: "superseded" });
  });

  test("let the next newest run if the newest is granted but never begins", async () => {
    const { holdfast, proxy } = await scene.reach({ commandTimeoutMs: 1_000 });
    await run(() => 0, {}, holdfast);
    const first = held<void>();
    const running = run(first.work);
    await first.began;
    const [oldest, second] = await line([() => 1, () => 2]);
    const never = vi.fn();
    const cutOff = run(never, { leaseMs: 1_000 }, holdfast);
    await waiting(3);
    const begin = proxy.hold(new RegExp(scripts.recipesCoalesceBegin.sha1));
    first.end();
    await running;
    await begin.reached;
    expect(await pending([oldest, second] as Promise<unknown>[]), "nobody has begun").toBe(true);
    proxy.stall();
    expect(await second).toEqual({ outcome: "ran", value: 2 });
    expect(await oldest).toMatchObject({ outcome: "superseded" });
    expect(await cutOff).toMatchObject({ outcome: "refused", reason: "unavailable" });
    expect(never).not.toHaveBeenCalled();
  });

  test("are granted again if their lease expires before they begin", async () => {
    const { holdfast, proxy } = await scene.reach();
    await run(() => 0, {}, holdfast);
    const begin = proxy.hold(new RegExp(scripts.recipesCoalesceBegin.sha1));
    const work = vi.fn(({ token }: CoalesceLease) => token);
    const running = run(work, { leaseMs: 1_000 }, holdfast);
    await begin.reached;
    const token = Number(await scene.redis.get(key(":fence")));
    await free();
    begin.release();
    const result = await running;
    expect("value" in result && result.value).toBeGreaterThan(token);
    expect(work).toHaveBeenCalledTimes(1);
  });

  test("run after a run that fails, whose error only its own caller gets", async () => {
    const first = held<void>();
    const running = run(first.work);
    await first.began;
    const second = run(() => "second", {}, scene.other);
    await waiting(1);
    const error = new Error("disk full");
    first.end(Promise.reject(error));
    await expect(running).rejects.toBe(error);
    expect(await second).toEqual({ outcome: "ran", value: "second" });
  });

  test("are refused with the current holder if `waitMs` runs out", async () => {
    const first = held<void>();
    const running = run(first.work, { label: "rebuild" });
    await first.began;
    expect(await run(() => 2, { waitMs: 20 }, scene.other)).toMatchObject({
      outcome: "refused",
      reason: "held",
      label: "rebuild",
      holder: { pid: process.pid, clientName: "first" },
    });
    expect(await run(() => 2, { waitMs: 0 }, scene.other)).toMatchObject({ outcome: "refused", reason: "held" });
    first.end();
    await running;
    await free();
    expect(await run(() => 3, { waitMs: 0 }, scene.other)).toEqual({ outcome: "ran", value: 3 });
  });
});

describe("with `join`", () => {
  const join = { mode: "join" } as const;

  test("the oldest waiter runs, and the others get copies of its result", async () => {
    const first = held<string>();
    const running = run(first.work, join);
    await first.began;
    const others = vi.fn();
    const next = held<{ at: Date; list: bigint[] }>();
    const calls = await line([next.work, others, others, others], join);
    first.end("first");
    expect(await running).toEqual({ outcome: "ran", value: "first" });
    await next.began;
    expect(await pending(calls)).toBe(true);
    const late = run(() => "later", join);
    await waiting(4, "joining");
    const value = { at: new Date(5), list: [5n] };
    next.end(value);
    expect(await calls[0]).toEqual({ outcome: "ran", value });
    const shared = await Promise.all(calls.slice(1));
    for (const one of shared) expect(one).toEqual({ outcome: "joined", value });
    expect(new Set(shared.map((one) => (one as { value: unknown }).value)).size).toBe(3);
    expect(await late, "that came when it had begun").toEqual({ outcome: "ran", value: "later" });
    expect(others).not.toHaveBeenCalled();
    await free();
  });

  test("the next waiter runs if the oldest gives up", async () => {
    const first = held<void>();
    const running = run(first.work, join);
    await first.began;
    const controller = new AbortController();
    const leaving = run(() => 1, { ...join, signal: controller.signal }, scene.other);
    await waiting(1, "joining");
    const calls = [run(() => 2, join), run(() => 3, join, scene.other)];
    await waiting(3, "joining");
    controller.abort(new Error("no longer"));
    await expect(leaving).rejects.toThrow("no longer");
    first.end();
    await running;
    const outcomes = await Promise.all(calls);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["joined", "ran"]);
    expect(new Set(outcomes.map((each) => (each as { value: number }).value)).size).toBe(1);
  });

  test("a failure is thrown to its caller and reported to the joined callers", async () => {
    const first = held<void>();
    const running = run(first.work, join);
    await first.began;
    const error = Object.assign(new RangeError("too many pages"), { pages: 9 });
    const calls = await line([() => Promise.reject(error), () => 2], join);
    first.end();
    await running;
    await expect(calls[0]).rejects.toBe(error);
    await expect(calls[1]).rejects.toThrow(CoalesceJoinError);
    await expect(calls[1]).rejects.toMatchObject({
      code: "ERR_LOCK_COALESCE_JOIN",
      failure: { name: "RangeError", message: "too many pages", data: { pages: 9 } },
    });
  });

  test.each<[string, (value: unknown) => string]>([
    ["refuses to encode it", () => expect.unreachable("no words")],
    ["does not encode it as text", (value) => value as string],
  ])("a failure is reported as one even if the value codec %s", async (_, encode) => {
    const first = held<void>();
    const running = run(first.work, join);
    await first.began;
    const error = new Error("no such page");
    const codec = { encode, decode: (text: string) => text };
    const calls = await line([() => Promise.reject(error), () => 2], { ...join, codec });
    first.end();
    await running;
    await expect(calls[0]).rejects.toBe(error);
    await expect(calls[1]).rejects.toMatchObject({
      name: "CoalesceJoinError",
      failure: { name: "Error", message: "no such page" },
    });
    await free();
  });

  test.each([
    ["too large", "x".repeat(101)],
    ["not serializable", () => {}],
  ])("a value that is %s reaches only its caller, and joined callers get an error", async (_, value) => {
    const first = held<void>();
    const running = run(first.work, join);
    await first.began;
    const calls = await line([() => value, () => 2], { ...join, valueBytesMax: 100 });
    first.end();
    await running;
    expect(await calls[0]).toEqual({ outcome: "ran", value });
    await expect(calls[1]).rejects.toMatchObject({ name: "CoalesceJoinError", failure: undefined });
  });

  test("a joining caller also gets the value of a newest-mode run", async () => {
    const first = held<void>();
    const running = run(first.work);
    await first.began;
    const joining = run(() => 1, join, scene.other);
    await waiting(1, "joining");
    const newest = run(() => 2);
    await waiting(1);
    first.end();
    await running;
    expect(await newest).toEqual({ outcome: "ran", value: 2 });
    expect(await joining).toEqual({ outcome: "joined", value: 2 });
  });
});

describe("with `cancelRunning`", () => {
  const cancel = { cancelRunning: true };

  test("running work is aborted, keeps its lease until it ends, and reports that it was superseded", async () => {
    const order: string[] = [];
    let lease: CoalesceLease | undefined;
    const aborted = held<void>();
    const running = run(async (own) => {
      lease = own;
      await aborted.work();
      order.push("ended");
      own.signal.throwIfAborted();
    });
    await aborted.began;
    const next = run(() => order.push("next"), cancel, scene.other);
    await vi.waitFor(() => expect(lease?.signal.aborted).toBe(true), eventually);
    expect(lease?.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(lease?.signal.reason).toMatchObject({ reason: "superseded", message: expect.stringContaining("must end") });
    lease?.assertHeld();
    expect(await pending([next])).toBe(true);
    aborted.end();
    expect(await running).toMatchObject({ outcome: "superseded", by: { clientName: "second" } });
    expect(await next).toMatchObject({ outcome: "ran" });
    expect(order).toEqual(["ended", "next"]);
  });

  test("work that ignores the abort runs to its end without overlap", async () => {
    const first = held<string>();
    let inside = 0;
    const alone = async (work: () => Promise<string>): Promise<string> => {
      inside += 1;
      expect(inside).toBe(1);
      const value = await work();
      inside -= 1;
      return value;
    };
    const running = run(() => alone(first.work));
    await first.began;
    const calls = [1, 2, 3].map((at) => run(() => alone(async () => `${at}`), cancel, scene.other));
    await waiting(3);
    expect(await scene.redis.hexists(key(":run"), "cancel")).toBe(1);
    first.end("ignored it");
    expect(await running).toEqual({ outcome: "ran", value: "ignored it" });
    const outcomes = (await Promise.all(calls)).map(({ outcome }) => outcome).sort();
    expect(outcomes).toEqual(["ran", "superseded", "superseded"]);
  });

  test("an unrelated error of the aborted work is thrown to its caller", async () => {
    const error = new Error("a bug");
    const running = run(async ({ signal }) => {
      await vi.waitFor(() => expect(signal.aborted).toBe(true), eventually);
      throw error;
    });
    running.catch(() => {});
    await vi.waitFor(async () => expect(await scene.redis.exists(key(":run"))).toBe(1), eventually);
    await run(() => 2, cancel, scene.other);
    await expect(running).rejects.toBe(error);
  });

  test("the next renewal replaces a lost message", async () => {
    const { holdfast, proxy } = await scene.reach();
    const began = held<void>();
    const running = run(
      async ({ signal }) => {
        const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
        void began.work();
        await aborted;
        return "heard";
      },
      { leaseMs: 1_000 },
      holdfast,
    );
    await began.began;
    proxy.dropMessages(true);
    const next = run(() => "next", cancel, scene.other);
    expect(await running).toEqual({ outcome: "ran", value: "heard" });
    expect(await next).toEqual({ outcome: "ran", value: "next" });
  });

  test("a joining call does not cancel the run that it has joined", async () => {
    const { holdfast, proxy } = await scene.reach();
    const first = held<void>();
    const running = run(first.work, { mode: "join" });
    await first.began;
    const next = held<string>();
    let lease: CoalesceLease | undefined;
    const runs = run(
      (own) => {
        lease = own;
        return next.work();
      },
      { mode: "join" },
    );
    await waiting(1, "joining");
    const joining = run(() => "never", { mode: "join", ...cancel }, holdfast);
    await waiting(2, "joining");
    expect(await scene.redis.hexists(key(":run"), "cancel"), "what runs now came before it").toBe(1);
    first.end();
    await running;
    await next.began;
    const [client, number] = (await scene.redis.zrange(key(":joining"), "0", "0"))[0]?.split("/") ?? [];
    const { requests } = proxy.counts;
    await scene.redis.publish(`hf:in:${client}`, `~${number}`);
    await vi.waitFor(() => expect(proxy.counts.requests, "it asks again").toBeGreaterThan(requests), eventually);
    await scene.redis.ping();
    expect(await scene.redis.hexists(key(":run"), "cancel")).toBe(0);
    next.end("shared");
    expect(await runs).toEqual({ outcome: "ran", value: "shared" });
    expect(lease?.signal.aborted).toBe(false);
    expect(await joining).toEqual({ outcome: "joined", value: "shared" });
  });
});

describe("lost replies", () => {
  test.each([scripts.recipesCoalesceAcquire, scripts.recipesCoalesceBegin, scripts.recipesCoalesceEnd])(
    "$name takes effect once",
    async ({ sha1 }) => {
      const { holdfast, proxy } = await scene.reach();
      await run(() => 0, {}, holdfast);
      const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${sha1}`, "i"));
      const work = vi.fn(() => "done");
      expect(await run(work, {}, holdfast)).toEqual({ outcome: "ran", value: "done" });
      await struck;
      expect(work).toHaveBeenCalledTimes(1);
      expect(await run(() => 2, {}, scene.other)).toEqual({ outcome: "ran", value: 2 });
      await free();
    },
  );

  test("a caller that never learned its place in the queue is still superseded", async () => {
    const { holdfast, proxy } = await scene.reach();
    await run(() => 0, {}, holdfast);
    const first = held<void>();
    const running = run(first.work);
    await first.began;
    proxy.dropMessages(true);
    const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${scripts.recipesCoalesceAcquire.sha1}`, "i"));
    proxy.refuse(true);
    const older = vi.fn();
    const call = run(older, {}, holdfast);
    await struck;
    await waiting(1);
    const newest = held<void>();
    const next = run(newest.work, {}, scene.other);
    await waiting(2);
    first.end();
    await running;
    await newest.began;
    proxy.refuse(false);
    proxy.dropMessages(false);
    newest.end();
    await next;
    expect(await call).toMatchObject({ outcome: "superseded", by: { clientName: "second" } });
    expect(older).not.toHaveBeenCalled();
  });

  test("callers learn the outcome by re-checks if all messages are lost", async () => {
    const { holdfast, proxy } = await scene.reach();
    await run(() => 0, {}, holdfast);
    const first = held<void>();
    const running = run(first.work);
    await first.began;
    const older = run(() => 1, {}, holdfast);
    await waiting(1);
    const newest = run(() => 2, {}, holdfast);
    await waiting(2);
    proxy.dropMessages(true);
    first.end();
    await running;
    expect(await newest).toEqual({ outcome: "ran", value: 2 });
    expect(await older).toMatchObject({ outcome: "superseded" });
    expect(proxy.counts.droppedMessages).toBeGreaterThan(0);
  });
});

describe("a server that loses its data", () => {
  test("keeps the order of waiters that re-check", async () => {
    const first = held<void>();
    const running = run(first.work);
    await first.began;
    const [older, newest] = await line([() => "older", () => "newest"]);
    const claims = (await scene.redis.zrange(key(":waiting"), "0", "1")).map((owner) => owner.split("/"));
    await scene.redis.del(key(":waiting"));
    for (const [at, [client, number]] of claims.toReversed().entries()) {
      await scene.redis.publish(`hf:in:${client}`, `~${number}`);
      await waiting(at + 1);
    }
    first.end();
    await running;
    expect(await newest).toEqual({ outcome: "ran", value: "newest" });
    expect(await older).toMatchObject({ outcome: "superseded" });
  });

  test("makes the run fail with its late result, and waiters still run", async () => {
    const first = held<string>();
    const running = run(first.work);
    await first.began;
    const [older, newest] = await line([() => 1, () => 2]);
    // Keeps the mark that allows the server to grant. Without the mark, the run would be restored as after a failover.
    await scene.redis.del(key(""), key(":fence"), key(":waiting"), key(":run"));
    first.end("late");
    await expect(running).rejects.toMatchObject({ name: "WorkLostError", reason: "server-lost", value: "late" });
    expect(await newest).toEqual({ outcome: "ran", value: 2 });
    expect(["superseded", "ran"]).toContain(((await older) as { outcome: string }).outcome);
  });

  test("and its grant mark has the run restored, which finishes before waiters run", async () => {
    const first = held<string>();
    const running = run(first.work);
    await first.began;
    const [older, newest] = await line([() => 1, () => 2]);
    await scene.redis.flushall();
    first.end("found");
    expect(await running).toEqual({ outcome: "ran", value: "found" });
    expect(await newest).toEqual({ outcome: "ran", value: 2 });
    expect(["superseded", "ran"]).toContain(((await older) as { outcome: string }).outcome);
  });
});

test("a server that does not reply leads to a refusal", async () => {
  const { holdfast, proxy } = await scene.reach();
  await run(() => 0, {}, holdfast);
  proxy.refuse(true);
  proxy.cutAll();
  const work = vi.fn();
  expect(await run(work, { waitMs: 100 }, holdfast)).toMatchObject({ outcome: "refused", reason: "unavailable" });
  expect(work).not.toHaveBeenCalled();
  proxy.refuse(false);
});

describe("a caller that gives up", () => {
  const why = new Error("client gone");

  test("before its request leaves immediately", async () => {
    await expect(run(() => 1, { signal: AbortSignal.abort(why) })).rejects.toBe(why);
    await free();
  });

  test("during its request leaves immediately", async () => {
    const { holdfast, proxy } = await scene.reach();
    await run(() => 0, {}, holdfast);
    const asking = proxy.hold(new RegExp(`^evalsha ${scripts.recipesCoalesceAcquire.sha1}`, "i"));
    const controller = new AbortController();
    const work = vi.fn();
    const leaving = run(work, { signal: controller.signal }, holdfast);
    await asking.reached;
    controller.abort(why);
    await expect(leaving).rejects.toBe(why);
    asking.release();
    await free();
    expect(work).not.toHaveBeenCalled();
  });

  test("when its run has begun does not stop the run", async () => {
    const { holdfast, proxy } = await scene.reach();
    await run(() => 0, {}, holdfast);
    const beginning = proxy.hold(new RegExp(`^evalsha ${scripts.recipesCoalesceBegin.sha1}`, "i"));
    const controller = new AbortController();
    const running = run(() => 1, { signal: controller.signal }, holdfast);
    await beginning.reached;
    controller.abort(why);
    beginning.release();
    expect(await running).toEqual({ outcome: "ran", value: 1 });
    await free();
  });
});

test("all remaining keys expire", async () => {
  const first = held<void>();
  const running = run(first.work, { mode: "join" });
  await first.began;
  const calls = await line([() => 1, () => 2, () => 3], { mode: "join" });
  first.end();
  await Promise.all([running, ...calls]);
  const keys = await scene.redis.keys(`${key()}*`);
  expect(keys.sort()).toEqual([key(":fence"), key(":run")]);
  for (const each of keys) expect(await scene.redis.pttl(each), each).toBeGreaterThan(0);
});

test("coalesce works the same on the embedded store", async () => {
  const holdfast = createHoldfast({ store: embedded() });
  const first = held<void>();
  const running = coalesce(holdfast, "o}{", first.work);
  await first.began;
  const older = coalesce(holdfast, "o}{", () => 1);
  const joining = coalesce(holdfast, "o}{", () => 2, { mode: "join" });
  const newest = coalesce(holdfast, "o}{", () => 3, { cancelRunning: true });
  await vi.waitFor(async () => expect(await pendingIn(holdfast)).toBe(true), eventually);
  first.end();
  await running;
  expect(await newest).toEqual({ outcome: "ran", value: 3 });
  expect(await older).toMatchObject({ outcome: "superseded" });
  expect(await joining).toEqual({ outcome: "joined", value: 3 });
  await holdfast.close();
  await expect(coalesce(holdfast, "o}{", () => 5)).rejects.toMatchObject({ name: "ClosedError" });

  /** Whether a call is refused. The reply comes after the replies to all earlier requests. */
  async function pendingIn(one: Holdfast): Promise<boolean> {
    return (await coalesce(one, "o}{", () => 4, { waitMs: 0 })).outcome === "refused";
  }
});

test.each([
  [{ mode: "oldest" }, "mode"],
  [{ cancelRunning: 1 }, "cancelRunning"],
  [{ waitMs: -1 }, "waitMs"],
  [{ leaseMs: 99 }, "leaseMs"],
  [{ maxHoldMs: 0 }, "maxHoldMs"],
  [{ valueBytesMax: -1 }, "valueBytesMax"],
  [{ codec: {} }, "codec"],
  [{ label: 5 }, "label"],
  [{ signal: {} }, "signal"],
  [{ ttl: 5 }, "ttl"],
])("the error for an invalid option names the option: %o", async (options, name) => {
  const work = vi.fn();
  await expect(run(work, options as object)).rejects.toThrow(name);
  await expect(coalesce(scene.holdfast, "", work)).rejects.toThrow("name must be 1 to 512 bytes");
  await expect(run(undefined as never)).rejects.toThrow("work must be a function");
  await expect(coalesce({} as Holdfast, "x", work)).rejects.toThrow("holdfast");
  expect(work).not.toHaveBeenCalled();
});
