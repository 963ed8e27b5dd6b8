/** Faults around `once`: lost messages, failed servers, and callers that leave at any moment. */
import { randomUUID } from "node:crypto";
import { getEventListeners } from "node:events";
import { createHoldfast, type Holdfast, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { startProgram } from "../../../tests/support/program.js";
import { startSentinel } from "../../../tests/support/redis-sentinel.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../../tests/support/tcp-proxy.js";
import { recipesOnceBegin, recipesOnceLeave, recipesOnceSettle } from "../src/generated/scripts.js";
import { OnceRunningError, OnceUnrecordedError, once } from "../src/index.js";

const eventually = { timeout: 30_000, interval: 10 };
let server: RedisServer;
let redis: Redis;
let closers: (() => unknown)[];
let holdfast: Holdfast;
let key: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
});

afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  closers = [];
  key = randomUUID();
  holdfast = client(server.port);
});

afterEach(async () => {
  for (const close of closers.toReversed()) await close();
});

function client(port: number): Holdfast {
  const connection = new Redis({ port, retryStrategy: () => 50 });
  connection.on("error", () => {});
  const made = createHoldfast({ redis: connection });
  closers.push(async () => {
    await made.close();
    connection.disconnect();
  });
  return made;
}

async function proxied(): Promise<{ proxy: TcpProxy; far: Holdfast }> {
  const proxy = await startProxy(server.port);
  closers.push(() => proxy.close());
  return { proxy, far: client(proxy.port) };
}

/** Starts a call that runs until `end` is called. */
async function running(by: Holdfast): Promise<{ ended: Promise<unknown>; end: () => void; lease: Lease }> {
  let end = (): void => {};
  const work = new Promise<string>((resolve) => {
    end = () => resolve("first");
  });
  let begin: (lease: Lease) => void = () => {};
  const began = new Promise<Lease>((resolve) => {
    begin = resolve;
  });
  const ended = once(by, key, (lease) => {
    begin(lease);
    return work;
  });
  return { ended, end, lease: await began };
}

test("of fifty callers in five processes, one runs and all get its value", { timeout: 60_000 }, async () => {
  const url = new URL("./programs/runner.mjs", import.meta.url);
  const programs = Array.from({ length: 5 }, () => startProgram(url, { port: server.port }));
  closers.push(() => Promise.all(programs.map((program) => program.kill())));
  const keys = Array.from({ length: 10 }, () => key);
  const all = await Promise.all(programs.map((program) => program.call<number[]>("many", { keys, leaseMs: 15_000 })));
  expect(all.flat()).toHaveLength(50);
  expect(new Set(all.flat()).size).toBe(1);
  expect(await redis.get(`${key}:effects`)).toBe("1");
});

test("a waiter that receives no messages finds the result by re-checks", async () => {
  const { proxy, far } = await proxied();
  proxy.dropMessages(true);
  const first = await running(holdfast);
  const second = once(far, key, () => "second", { waitMs: 60_000 });
  await vi.waitFor(
    async () => expect(await redis.pubsub("NUMSUB", `hf:once:{/${key}}:ended`)).toContain(1),
    eventually,
  );
  first.end();
  await first.ended;
  expect(await second).toMatchObject({ value: "first", replayed: true });
  expect(proxy.counts.droppedMessages).toBeGreaterThan(0);
});

describe("a server", () => {
  test("that restarts empty loses the call: its runner gets an error and a waiter runs", {
    timeout: 60_000,
  }, async () => {
    const own = await startRedis();
    closers.push(() => own.stop());
    const [near, far] = [client(own.port), client(own.port)];
    const first = await running(near);
    const second = once(far, key, () => "second", { waitMs: 60_000 });
    await own.kill();
    await own.restart();
    expect(await second).toMatchObject({ value: "second", replayed: false });
    first.end();
    await expect(first.ended).rejects.toMatchObject({ name: "OnceLostError", value: "first" });
    expect(await once(near, key, () => "third")).toMatchObject({ value: "second", replayed: true });
  });

  test("that is replaced by its replica keeps the running call and then its record", {
    timeout: 120_000,
  }, async () => {
    const topology = await startSentinel({ downAfterMs: 60_000 });
    closers.push(() => topology.stop());
    const behindSentinel = (): Holdfast => {
      const connection = new Redis({
        sentinels: [...topology.addresses],
        name: topology.name,
        retryStrategy: () => 50,
      });
      connection.on("error", () => {});
      const made = createHoldfast({ redis: connection });
      closers.push(async () => {
        await made.close();
        connection.disconnect();
      });
      return made;
    };
    const [near, far] = [behindSentinel(), behindSentinel()];
    await once(near, `${key}:warm`, () => 1);
    const first = await running(near);
    const second = once(far, key, () => "second", { waitMs: 100_000 });
    const old = await topology.master();
    expect(Number(await old.command("WAIT", "2", "30000"))).toBe(2);
    await topology.failover();
    first.end();
    expect(await first.ended).toMatchObject({ value: "first", replayed: false });
    expect(await second).toMatchObject({ value: "first", replayed: true, attempt: 1 });
    expect(await once(far, key, () => "third")).toMatchObject({ value: "first", replayed: true });
  });
});

describe("a caller that leaves", () => {
  const moments: readonly (readonly [string, RegExp])[] = [
    ["while its request is under way", new RegExp(`^evalsha ${recipesOnceBegin.sha1}`, "i")],
    ["while it subscribes", /^subscribe .*:ended$/i],
  ];

  test.each(moments)("%s leaves nothing behind and does not disturb other callers", async (_, moment) => {
    const { proxy, far } = await proxied();
    await once(far, `${key}:warm`, () => 1);
    const first = await running(holdfast);
    const held = proxy.hold(moment);
    const controller = new AbortController();
    const work = vi.fn();
    const leaving = once(far, key, work, { signal: controller.signal, waitMs: 60_000 });
    await held.reached;
    const why = new Error("no longer");
    controller.abort(why);
    await expect(leaving).rejects.toBe(why);
    held.release();
    await isGone(controller.signal);
    first.end();
    expect(await first.ended).toMatchObject({ value: "first", attempt: 1 });
    expect(work).not.toHaveBeenCalled();
    await vi.waitFor(
      async () => expect(await redis.pubsub("NUMSUB", `hf:once:{/${key}}:ended`)).toContain(0),
      eventually,
    );
  });

  test("during a re-check leaves nothing behind", async () => {
    const { proxy, far } = await proxied();
    const first = await running(holdfast);
    const controller = new AbortController();
    const leaving = once(far, key, () => 2, { signal: controller.signal, waitMs: 60_000 });
    await vi.waitFor(
      async () => expect(await redis.pubsub("NUMSUB", `hf:once:{/${key}}:ended`)).toContain(1),
      eventually,
    );
    // The waiter re-checks on its own soon, because a message can be lost.
    const asking = proxy.hold(new RegExp(`^evalsha ${recipesOnceBegin.sha1}`, "i"));
    await asking.reached;
    controller.abort(new Error("no longer"));
    await expect(leaving).rejects.toThrow("no longer");
    asking.release();
    await isGone(controller.signal);
    first.end();
    expect(await first.ended).toMatchObject({ value: "first" });
  });

  test("before it receives its grant leaves the call to the next caller", async () => {
    const { proxy, far } = await proxied();
    await once(far, `${key}:warm`, () => 1);
    const leave = proxy.hold(new RegExp(`^evalsha ${recipesOnceLeave.sha1}`, "i"));
    const begin = proxy.hold(new RegExp(`^evalsha ${recipesOnceBegin.sha1}`, "i"));
    const controller = new AbortController();
    const work = vi.fn();
    const leaving = once(far, key, work, { signal: controller.signal });
    await begin.reached;
    controller.abort(new Error("no longer"));
    await expect(leaving).rejects.toThrow("no longer");
    begin.release();
    await leave.reached;
    leave.release();
    expect(await once(holdfast, key, () => "next", { waitMs: 60_000 })).toMatchObject({
      value: "next",
      attempt: 1, // The first attempt was returned. It did not expire.
    });
    expect(work).not.toHaveBeenCalled();
  });

  async function isGone(signal: AbortSignal): Promise<void> {
    await vi.waitFor(() => expect(getEventListeners(signal, "abort")).toEqual([]), eventually);
  }
});

describe("a Holdfast that closes", () => {
  test("without grace does not release a call whose work still runs and reports it", async () => {
    const first = await running(holdfast);
    const { released, unsettled } = await holdfast.close();
    expect([released, unsettled]).toMatchObject([[], [{ kind: "once", name: `/${key}` }]]);
    await expect(once(client(server.port), key, () => 2, { whenRunning: "reject" })).rejects.toThrow(OnceRunningError);
    // A manual release is refused, too, without a request to the server.
    await expect(first.lease.release()).rejects.toMatchObject({ code: "ERR_LOCK_STORE", mayHaveRun: false });
    first.end();
    expect(await first.ended).toMatchObject({ value: "first" });
  });

  test("with grace waits for the end of a call and reports its release", async () => {
    const first = await running(holdfast);
    const closed = holdfast.close({ graceMs: 60_000 });
    first.end();
    expect(await first.ended).toMatchObject({ value: "first", replayed: false });
    expect(await closed).toMatchObject({ released: [{ kind: "once", name: `/${key}` }], unsettled: [] });
  });

  test("does not report a release that the server has not confirmed", { timeout: 60_000 }, async () => {
    const { proxy, far } = await proxied();
    await once(far, `${key}:warm`, () => 1);
    const first = await running(far);
    const settle = proxy.hold(new RegExp(`^evalsha ${recipesOnceSettle.sha1}`, "i"));
    const closed = far.close({ graceMs: 60_000 });
    first.end();
    await settle.reached;
    const error = await first.ended.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OnceUnrecordedError);
    expect(error).toMatchObject({
      value: "first",
      mayHaveRun: true,
      message: expect.stringMatching(
        /^The work for ".+" ended, but its result may not be recorded \(".+"\)\. The result is in/,
      ),
    });
    settle.release();
    expect(await closed).toMatchObject({ released: [], unsettled: [{ kind: "once", name: `/${key}` }] });
  });
});

test("a caller whose signal is already aborted sends nothing", async () => {
  const why = new Error("before");
  await expect(once(holdfast, key, () => 1, { signal: AbortSignal.abort(why) })).rejects.toBe(why);
  expect(await redis.exists(`hf:once:{/${key}}`)).toBe(0);
});

test("all keys expire, and no subscription or signal listener remains", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const first = await running(holdfast);
  const second = once(client(server.port), key, () => 2, { signal, waitMs: 60_000 });
  await vi.waitFor(
    async () => expect(await redis.pubsub("NUMSUB", `hf:once:{/${key}}:ended`)).toContain(1),
    eventually,
  );
  first.end();
  await Promise.all([first.ended, second]);
  await once(holdfast, `${key}:failed`, () => Promise.reject(new Error("no"))).catch(() => {});
  expect(getEventListeners(signal, "abort")).toEqual([]);
  await vi.waitFor(async () => expect(await redis.pubsub("CHANNELS", "*:ended")).toEqual([]), eventually);
  const keys = (await redis.keys("hf:*")).filter((each) => each.includes(key));
  expect(keys.length).toBeGreaterThan(0);
  for (const each of keys) expect(await redis.pttl(each), each).toBeGreaterThan(0);
  expect(holdfast.held()).toEqual([]);
});
