import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { StoreError } from "../../src/core/errors.js";
import { channels } from "../../src/core/events.js";
import { lost, NOW_US, ScriptedLock, ScriptedStore } from "./scripted-lock.js";

let world: ScriptedLock;
let heard: [string, Record<string, unknown>][];
let stop: (() => void)[];

beforeEach(() => {
  world = new ScriptedLock();
  heard = [];
  stop = [];
});
afterEach(() => {
  for (const unsubscribe of stop) unsubscribe();
  vi.restoreAllMocks();
});

function listen(): void {
  for (const [name, channel] of Object.entries(channels)) {
    const listener = (message: unknown): void => void heard.push([name, message as Record<string, unknown>]);
    channel.subscribe(listener);
    stop.push(() => channel.unsubscribe(listener));
  }
}

const of = (name: string): Record<string, unknown>[] =>
  heard.filter(([from]) => from === name).map(([, event]) => event);

test("every channel has its documented name", () => {
  expect(Object.fromEntries(Object.entries(channels).map(([short, { name }]) => [short, name]))).toEqual({
    acquire: "holdfast:acquire",
    command: "holdfast:command",
    wait: "holdfast:wait",
    grant: "holdfast:grant",
    inbox: "holdfast:inbox",
    ungranted: "holdfast:ungranted",
    renew: "holdfast:renew",
    lost: "holdfast:lost",
    release: "holdfast:release",
    forced: "holdfast:forced",
    pause: "holdfast:pause",
    resume: "holdfast:resume",
  });
});

test("a hold publishes its acquire, grant, renewals and release with names, owner, token and times", async () => {
  listen();
  const lease = await world.lock.acquire({ waitMs: 500, leaseMs: 30_000, label: "x" });
  await world.runtime.advance(10_000);
  world.answers.extend = () => Promise.reject(lost());
  await world.runtime.advance(10_000);
  await lease.release();
  const about = { kind: "mutex", lockName: "scripted", owner: lease.owner };
  const [{ call } = {}] = of("acquire");
  expect(call).toBeTypeOf("object");
  expect(of("acquire")).toEqual([{ ...about, call, waitMs: 500, leaseMs: 30_000 }]);
  expect(of("grant")).toEqual([{ ...about, call, token: 7, waitedMs: 0 }]);
  expect(of("grant")[0]?.call).toBe(call);
  expect(of("renew")).toEqual([
    { ...about, token: 7, error: undefined, validForMs: 29_698 },
    { ...about, token: 7, error: expect.any(Error), validForMs: 19_698 },
  ]);
  expect(of("release")).toEqual([{ ...about, token: 7, outcome: "released", heldMs: 20_000 }]);
  expect(of("wait")).toEqual([]);
  expect(of("lost")).toEqual([]);
});

test("a renewal that the server refuses is a loss and not a renewal", async () => {
  listen();
  world.answers.extend = async () => "claimed";
  await world.lock.acquire({ leaseMs: 30_000 });
  await world.runtime.advance(12_000);
  expect(of("lost")).toMatchObject([{ token: 7, reason: "server-lost" }]);
  expect(of("renew")).toEqual([]);
});

test("a wait is published once with its queue state, and the grant contains its duration", async () => {
  listen();
  await world.session.clientInbox.open(1_000);
  world.answers.acquire = async () => ({ outcome: "waiting", restMs: 30_000, nowUs: NOW_US });
  const acquiring = world.lock.acquire();
  await world.runtime.advance(6_000);
  world.answers.acquire = async () => ({ outcome: "granted", token: 9 });
  world.store.reconnect("inbox");
  const lease = await acquiring;
  expect(of("wait")).toEqual([{ kind: "mutex", lockName: "scripted", owner: lease.owner, queued: true }]);
  expect(of("grant")).toMatchObject([{ token: 9, waitedMs: 6_000 }]);
});

test("the first wait of a client is published once it is in the queue", async () => {
  listen();
  world.answers.acquire = async ({ enqueue }) => ({
    outcome: enqueue === true ? "waiting" : "refused",
    restMs: 30_000,
    nowUs: NOW_US,
  });
  void world.lock.acquire({ waitMs: Infinity });
  await world.runtime.advance(60_000);
  expect(of("wait")).toMatchObject([{ queued: true }]);
});

test.each([
  ["cannot subscribe", ScriptedStore.unsupported],
  ["temporarily cannot subscribe", () => Promise.reject(lost())],
])("the wait of a client that %s is published once, as not queued", async (_, opening) => {
  listen();
  world.store.subscribe = opening;
  world.answers.acquire = async () => ({ outcome: "refused", restMs: 30_000, nowUs: NOW_US });
  void world.lock.acquire({ waitMs: Infinity });
  await world.runtime.advance(20_000);
  expect(of("wait")).toMatchObject([{ queued: false }]);
});

describe("a call that ends without a lease", () => {
  const refuse = (): void => {
    world.answers.acquire = async ({ enqueue }) => ({
      outcome: enqueue === true ? "waiting" : "refused",
      restMs: 30_000,
      nowUs: NOW_US,
    });
  };

  test.each([false, true])("is published once with its outcome and call (in a cohort: %s)", async (takesTurns) => {
    world = new ScriptedLock({ takesTurns });
    listen();
    refuse();
    const controller = new AbortController();
    const ending = Promise.allSettled([
      world.lock.tryAcquire(),
      world.lock.acquire({ waitMs: 500 }),
      world.lock.acquire({ waitMs: 60_000, signal: controller.signal }),
    ]);
    await world.runtime.advance(1_000);
    controller.abort(new Error("no longer"));
    await world.runtime.advance(1_000);
    await ending;
    world.answers.acquire = () =>
      Promise.reject(new StoreError("scripted", { mayHaveRun: false, transient: false, cause: undefined }));
    await world.lock.acquire({ fairness: "strict" }).catch(() => {});
    const order = (event: Record<string, unknown>): number =>
      of("acquire").findIndex(({ call }) => call === event.call);
    const told = of("ungranted").toSorted((a, b) => order(a) - order(b));
    expect(told).toMatchObject([
      { outcome: "refused", waitedMs: 0, error: undefined },
      { outcome: "timeout", error: undefined },
      { outcome: "aborted", error: { message: "no longer" } },
      { outcome: "unknown", error: expect.any(StoreError) },
    ]);
    expect(told.map(order)).toEqual([0, 1, 2, 3]);
    expect(told[1]?.waitedMs).toBeGreaterThanOrEqual(500);
    expect(of("grant")).toEqual([]);
  });

  test("is published as closed if the Holdfast is closed", async () => {
    listen();
    refuse();
    const waiting = world.lock.acquire({ waitMs: Infinity }).catch(() => {});
    await world.runtime.advance(10);
    await world.session.close();
    await waiting;
    expect(of("ungranted")).toMatchObject([{ outcome: "closed" }]);
  });
});

test("an exported lease is published as handed over, once", async () => {
  listen();
  const lease = await world.lock.acquire();
  lease.export();
  await lease.release();
  expect(of("release")).toMatchObject([{ outcome: "handed-over", token: 7 }]);
});

test("a loss is published once with its reason, before the signal aborts", async () => {
  listen();
  const lease = await world.lock.acquire({ renew: false });
  lease.signal.addEventListener("abort", () => heard.push(["abort", {}]));
  await world.runtime.advance(60_000);
  expect(of("lost")).toMatchObject([{ token: 7, reason: "expired", owner: lease.owner }]);
  expect(heard.map(([name]) => name).slice(-2)).toEqual(["lost", "abort"]);
});

test.each([
  ["released", async () => "released" as const, "released"],
  ["unclaimed", async () => "unclaimed" as const, "expired-unclaimed"],
  ["claimed", async () => "claimed" as const, "lost"],
  ["an error", () => Promise.reject(new Error("no")), "unknown"],
])("a release answered with %s is published with its outcome", async (_, answer, outcome) => {
  listen();
  world.answers.release = answer;
  const lease = await world.lock.acquire();
  await lease.release().catch(() => {});
  expect(of("release")).toMatchObject([{ outcome }]);
});

test("nothing is published without a subscriber", async () => {
  const spies = Object.values(channels).map((channel) => vi.spyOn(channel, "publish"));
  const lease = await world.lock.acquire();
  await world.runtime.advance(25_000);
  await lease.release();
  await (await world.lock.acquire({ renew: false })).release();
  const lossy = await world.lock.acquire({ renew: false });
  await world.runtime.advance(60_000);
  expect(lossy.validForMs()).toBe(0);
  world.answers.acquire = async () => ({ outcome: "refused", restMs: 1, nowUs: NOW_US });
  expect(await world.lock.tryAcquire()).toBeNull();
  for (const spy of spies) expect(spy).not.toHaveBeenCalled();
});

test("a subscriber that throws does not affect the lock holder", async () => {
  const thrown: unknown[] = [];
  const before = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.once("uncaughtException", (error) => thrown.push(error));
  const listener = (): void => {
    throw new Error("a bad listener");
  };
  channels.grant.subscribe(listener);
  stop.push(() => channels.grant.unsubscribe(listener));
  const lease = await world.lock.acquire();
  await new Promise((resolve) => setTimeout(resolve, 5));
  for (const handler of before) process.on("uncaughtException", handler);
  expect(thrown).toHaveLength(1);
  expect(await lease.release()).toBe("released");
});

test("callers that share a claim publish their own events with one owner and separate tokens", async () => {
  world = new ScriptedLock({ takesTurns: true });
  listen();
  world.answers.acquire = async ({ enqueue }) => ({
    outcome: enqueue === true ? "waiting" : "refused",
    restMs: 30_000,
    nowUs: NOW_US,
  });
  const acquiring = [world.lock.acquire({ waitMs: 500 }), world.lock.acquire({ waitMs: Infinity })];
  await world.runtime.advance(10);
  world.store.push(`+${world.lastNumber} 7 ${NOW_US + 10_000}`);
  const [first, second] = [await acquiring[0], acquiring[1]];
  await first?.release();
  const last = await second;
  await world.runtime.advance(10_000);
  await last?.release();
  const about = { kind: "mutex", lockName: "scripted", owner: last?.owner };
  const calls = of("acquire").map(({ call }) => call);
  expect(calls[0]).not.toBe(calls[1]);
  expect(of("acquire")).toEqual([
    { ...about, call: calls[0], waitMs: 500, leaseMs: 30_000 },
    { ...about, call: calls[1], waitMs: Infinity, leaseMs: 30_000 },
  ]);
  // The second caller waits behind the first. The shared claim publishes a wait of its own.
  expect(of("wait").map(({ call }) => calls.indexOf(call))).toEqual([1, -1]);
  expect(of("grant").map(({ call }) => calls.indexOf(call))).toEqual([0, 1]);
  expect(of("grant")).toMatchObject([
    { ...about, token: 7, waitedMs: 10 },
    { ...about, token: 8, waitedMs: 10 },
  ]);
  expect(of("renew")).toMatchObject([{ token: 8 }]);
  expect(of("release")).toMatchObject([
    { ...about, token: 7, outcome: "released" },
    { ...about, token: 8, outcome: "released" },
  ]);
});
