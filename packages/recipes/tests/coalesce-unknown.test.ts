/** `coalesce` on a real server: simultaneous calls, and requests whose outcome is unknown. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { expect, onTestFinished, test, vi } from "vitest";
import { startProxy, type TcpProxy } from "../../../tests/support/tcp-proxy.js";
import { systemRuntime } from "../../holdfast/src/core/runtime.js";
import { createHoldfastOn } from "../../holdfast/src/holdfast.js";
import * as scripts from "../src/generated/scripts.js";
import { type CoalesceLease, type CoalesceOptions, type CoalesceResult, coalesce } from "../src/index.js";
import { eventually, held, useQueueScene } from "./queue-scene.js";

const scene = useQueueScene();
const join = { mode: "join" } as const;
const commandTimeoutMs = 100;
const cancel = { cancelRunning: true };
const isBegin = new RegExp(`^evalsha ${scripts.recipesCoalesceBegin.sha1}`, "i");

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

test("of two simultaneous calls with join and cancel, one runs uncanceled and the other joins it", async () => {
  const { holdfast, proxy } = await scene.reach();
  await run(() => 0, {}, holdfast);
  const begin = proxy.hold(isBegin);
  const signals: AbortSignal[] = [];
  const work = held<string>();
  const first = run(
    (lease) => {
      signals.push(lease.signal);
      return work.work();
    },
    { ...join, ...cancel },
    holdfast,
  );
  await begin.reached;
  const second = run(() => "never", { ...join, ...cancel }, scene.other);
  await waiting(1, "joining");
  begin.release();
  await work.began;
  expect(signals[0]?.aborted).toBe(false);
  work.end("shared");
  expect(await first).toEqual({ outcome: "ran", value: "shared" });
  expect(await second).toEqual({ outcome: "joined", value: "shared" });
});

test.each<[string, (signal: AbortSignal) => unknown]>([
  ["the reason of its signal", (signal) => signal.throwIfAborted()],
  ["an error with that reason as its cause, as Node.js APIs throw", (signal) => sleep(1, undefined, { signal })],
])("callers that joined a run that is canceled and ends with %s share the next run", async (_, end) => {
  const first = held<void>();
  const running = run(first.work);
  await first.began;
  const aborted = held<void>();
  const oldest = run(async ({ signal }) => {
    signal.addEventListener("abort", () => aborted.end());
    await aborted.work();
    await end(signal);
  }, join);
  await waiting(1, "joining");
  const joining = run(() => "never", join, scene.other);
  await waiting(2, "joining");
  first.end();
  await running;
  await aborted.began;
  const newest = run(() => "newest", cancel, scene.other);
  expect(await oldest).toMatchObject({ outcome: "superseded", by: { clientName: "second" } });
  expect(await newest).toEqual({ outcome: "ran", value: "newest" });
  expect(await joining).toEqual({ outcome: "joined", value: "newest" });
});

/** Waits until every open request of this process has had time for `count` command timeouts. */
async function timeOuts(count: number): Promise<void> {
  const sinceMs = performance.now();
  await vi.waitFor(() => expect(performance.now() - sinceMs).toBeGreaterThan(commandTimeoutMs * count), eventually);
}

/** Resolves when the next call via the proxy has begun without a reply. The proxy then refuses connections. */
async function beginUnheard(proxy: TcpProxy): Promise<void> {
  await proxy.cutBeforeReply(isBegin);
  proxy.refuse(true);
}

test("a caller without a reply to its begin request retries until it knows, and runs", async () => {
  const { holdfast, proxy } = await scene.reach({ commandTimeoutMs });
  await run(() => 0, {}, holdfast);
  const first = held<void>();
  const running = run(first.work, { leaseMs: 600_000 });
  await first.began;
  const older = run(() => "older", {}, scene.other);
  await waiting(1);
  const unheard = beginUnheard(proxy);
  const newest = run(() => "newest", { leaseMs: 600_000 }, holdfast);
  await waiting(2);
  first.end();
  await running;
  await unheard;
  expect(await older).toMatchObject({ outcome: "superseded" });
  await timeOuts(5);
  proxy.refuse(false);
  expect(await newest, "who was superseded by it relies on that").toEqual({ outcome: "ran", value: "newest" });
});

test("a caller that gives up before the reply to its begin request runs nothing", async () => {
  const { holdfast, proxy } = await scene.reach({ commandTimeoutMs });
  await run(() => 0, {}, holdfast);
  const unheard = beginUnheard(proxy);
  const controller = new AbortController();
  const work = vi.fn();
  const leaving = run(work, { leaseMs: 600_000, signal: controller.signal }, holdfast);
  leaving.catch(() => {});
  await unheard;
  const why = new Error("client gone");
  controller.abort(why);
  await expect(leaving).rejects.toBe(why);
  expect(work).not.toHaveBeenCalled();
});

/** A client whose clock can be moved forward while it is disconnected. */
async function reachWithClock(): Promise<{ holdfast: Holdfast; proxy: TcpProxy; forward(ms: number): void }> {
  const proxy = await startProxy(scene.server.port);
  const client = new Redis({ port: proxy.port, retryStrategy: () => 20 });
  client.on("error", () => {});
  let aheadMs = 0;
  const runtime = {
    ...systemRuntime,
    monotonicMs: () => systemRuntime.monotonicMs() + aheadMs,
    wallMs: () => systemRuntime.wallMs() + aheadMs,
  };
  const holdfast = createHoldfastOn(runtime, { redis: client, commandTimeoutMs });
  onTestFinished(async () => {
    await holdfast.close();
    client.disconnect();
    await proxy.close();
  });
  return { holdfast, proxy, forward: (ms) => (aheadMs += ms) };
}

const cutOff = { leaseMs: 86_400_000 };

test("a call that was made while disconnected keeps its age when it arrives late", async () => {
  const { holdfast, proxy, forward } = await reachWithClock();
  await run(() => 0, {}, holdfast);
  proxy.refuse(true);
  proxy.cutAll();
  const older = vi.fn();
  const call = run(older, cutOff, holdfast);
  await timeOuts(2);
  expect(await run(() => "newer", {}, scene.other)).toEqual({ outcome: "ran", value: "newer" });
  forward(3_600_000);
  proxy.refuse(false);
  expect(await call).toMatchObject({ outcome: "superseded", by: { clientName: "second" } });
  expect(older).not.toHaveBeenCalled();
});

test("a disconnected call runs if no other run began after it was made", async () => {
  const { holdfast, proxy } = await reachWithClock();
  await run(() => 0, {}, holdfast);
  expect(await run(() => "before", {}, scene.other)).toEqual({ outcome: "ran", value: "before" });
  const lost = proxy.cutBeforeRequest(new RegExp(`^evalsha ${scripts.recipesCoalesceAcquire.sha1}`, "i"));
  const call = run(() => "after", cutOff, holdfast);
  await lost;
  expect(await call).toEqual({ outcome: "ran", value: "after" });
});

/** A call that was made while disconnected, has begun on the server, and has not received the reply. */
async function lateAndUnheard(): Promise<{ call: Promise<unknown>; proxy: TcpProxy; forward(ms: number): void }> {
  const { holdfast, proxy, forward } = await reachWithClock();
  await run(() => 0, {}, holdfast);
  proxy.refuse(true);
  proxy.cutAll();
  const call = run(() => "late", cutOff, holdfast);
  await timeOuts(2);
  const unheard = beginUnheard(proxy);
  proxy.refuse(false);
  await unheard;
  return { call, proxy, forward };
}

test("a disconnected call that began and lost its lease without a reply is not superseded by itself", async () => {
  const { call, proxy, forward } = await lateAndUnheard();
  await scene.redis.del(key());
  forward(cutOff.leaseMs);
  proxy.refuse(false);
  expect(await call).toEqual({ outcome: "ran", value: "late" });
});

test("a disconnected call that is granted again keeps the arrival time of its begin", async () => {
  const { call, proxy, forward } = await lateAndUnheard();
  const began = `${Number(await scene.redis.hget(key(":run"), "arrival")) - 5_000_000}`;
  await scene.redis.hset(key(":run"), "arrival", began);
  await scene.redis.set(key(), "another/1/1000/1/", "PX", 3_000);
  forward(cutOff.leaseMs);
  proxy.refuse(false);
  await waiting(1);
  const [waiter = ""] = await scene.redis.zrange(key(":waiting"), "0", "0");
  expect(await scene.redis.zscore(key(":waiting"), waiter)).toBe(began);
  expect(await call).toEqual({ outcome: "ran", value: "late" });
});

test("a disconnected call with `cancelRunning` does not cancel a newer run", async () => {
  const { holdfast, proxy } = await reachWithClock();
  await run(() => 0, {}, holdfast);
  const late = proxy.hold(new RegExp(`^evalsha ${scripts.recipesCoalesceAcquire.sha1}`, "i"));
  const older = vi.fn();
  const call = run(older, { ...cutOff, ...cancel }, holdfast);
  await late.reached;
  await timeOuts(2);
  const newer = held<string>();
  let signal: AbortSignal | undefined;
  const running = run(
    (lease) => {
      signal = lease.signal;
      return newer.work();
    },
    {},
    scene.other,
  );
  await newer.began;
  late.release();
  expect(await call).toMatchObject({ outcome: "superseded", by: { clientName: "second" } });
  expect(older).not.toHaveBeenCalled();
  expect(signal?.aborted).toBe(false);
  expect(await scene.redis.hget(key(":run"), "cancel"), "somebody wants it to end").toBeNull();
  newer.end("newer");
  expect(await running).toEqual({ outcome: "ran", value: "newer" });
});
