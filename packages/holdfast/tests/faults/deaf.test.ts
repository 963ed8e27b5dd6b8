/** Dead subscriber connections that give no sign: the client detects and replaces them. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { startSentinel } from "../../../../tests/support/redis-sentinel.js";
import { startProxy, type TcpProxy } from "../../../../tests/support/tcp-proxy.js";
import { createHoldfast, type Holdfast, type InboxEvent } from "../../src/index.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

/** Longer than the detection takes, so that no lease expires meanwhile. */
const LEASE_MS = 4 * LONG_MS;

let states: string[];
const onEvent = (event: unknown): void => void states.push((event as InboxEvent).state);
beforeEach(() => {
  states = [];
  subscribe("holdfast:inbox", onEvent);
});
afterEach(() => void unsubscribe("holdfast:inbox", onEvent));

function warnings(): string[] {
  const codes: string[] = [];
  const onWarning = (warning: Error): void => {
    const code: unknown = Reflect.get(warning, "code");
    if (code === "HOLDFAST_INBOX_DEAF") codes.push(warning.message);
  };
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  return codes;
}

/** Acquires the lock with one client, and queues `waiter` for it behind the proxy. */
async function contended(holder: Holdfast, waiter: Holdfast): Promise<{ release(): Promise<void> }> {
  const lease = await holder.mutex(scene.name).acquire({ leaseMs: LEASE_MS });
  const waiting = waiter.mutex(scene.name).acquire({ waitMs: LEASE_MS, leaseMs: LEASE_MS });
  await scene.queued(1);
  return {
    async release() {
      expect(await lease.release()).toBe("released");
      expect(await (await waiting).release()).toBe("released");
    },
  };
}

async function clientBehind(library: typeof ioredis, proxy: TcpProxy): Promise<[Holdfast, Holdfast]> {
  return [await scene.client(ioredis), await scene.client(library, {}, proxy.port)];
}

describe.each([ioredis, nodeRedis, glide])("$name", (library) => {
  test.each(["silent", "server"] as const)(
    "a waiter whose subscriber connection is a black hole (%s) replaces it, and is then notified",
    async (end) => {
      const proxy = await scene.proxy();
      const warned = warnings();
      const lock = await contended(...(await clientBehind(library, proxy)));
      expect(proxy.blackHole(end)).toBe(1);
      await until(() => states.includes("hears"), "an echo over another connection");
      expect(states).toEqual(["deaf", "hears"]);
      const before = proxy.counts.messages;
      await lock.release();
      expect(proxy.counts.messages).toBeGreaterThan(before);
      expect(warned).toEqual([]);
    },
    150_000,
  );

  test("if no message is delivered, waiters poll, are granted, and the process is warned once", async () => {
    const proxy = await scene.proxy();
    const warned = warnings();
    const [holder, waiter] = await clientBehind(library, proxy);
    const first = await contended(holder, waiter);
    proxy.dropMessages(true);
    await until(() => warned.length > 0, "the warning");
    const before = proxy.counts.requests;
    await until(() => proxy.counts.requests > before + 10, "questions of a waiter that polls");
    expect(await scene.holder(), "whom polling leaves alone").not.toBeNull();
    await scene.queued(1);
    await first.release();
    for (let turn = 0; turn < 3; turn += 1) await (await contended(holder, waiter)).release();
    expect(warned.length).toBe(1);
    const last = await contended(holder, waiter);
    proxy.dropMessages(false);
    await until(() => states.includes("hears"), "an echo");
    const heard = proxy.counts.messages;
    await last.release();
    expect(proxy.counts.messages).toBeGreaterThan(heard);
  }, 150_000);
});

test("an idle client detects on its first wait that its subscriber connection is dead", async () => {
  const proxy = await scene.proxy();
  const [holder, waiter] = await clientBehind(ioredis, proxy);
  await waiter.mutex(scene.name).run(() => {});
  await until(async () => proxy.counts.connections === 2, "the subscriber connection");
  const channels = async (): Promise<string[]> =>
    (await scene.server.command("PUBSUB", "CHANNELS", "hf:in:*")) as string[];
  await until(async () => (await channels()).length === 1, "the subscription");
  const [inbox = ""] = await channels();
  const isSubscribed = async (): Promise<boolean> => (await channels()).includes(inbox);
  expect(proxy.blackHole("server")).toBe(1);
  await until(async () => !(await isSubscribed()), "the server to close its end");
  // Nothing has been received for longer than a connection is trusted without a check.
  await new Promise((resolve) => setTimeout(resolve, 4_500));
  const lock = await contended(holder, waiter);
  await until(isSubscribed, "another subscription");
  await lock.release();
}, 150_000);

test("behind Sentinel, a waiter replaces a subscriber connection that the server has closed", async () => {
  const topology = await startSentinel({ downAfterMs: 60_000 });
  onTestFinished(() => topology.stop());
  const { addresses, name } = topology;
  const master = await topology.master();
  const proxy = await startProxy(master.port);
  onTestFinished(() => proxy.close());
  const natMap = { [`127.0.0.1:${master.port}`]: { host: "127.0.0.1", port: proxy.port } };
  const redis = new Redis({ sentinels: [...addresses], name, natMap });
  redis.on("error", () => {});
  const holdfast = createHoldfast({ redis, failoverGrace: "off" });
  onTestFinished(async () => {
    await holdfast.close();
    redis.disconnect();
  });
  const mutex = holdfast.mutex(scene.name);
  const lease = await mutex.acquire({ leaseMs: LEASE_MS });
  const waiting = mutex.acquire({ waitMs: LEASE_MS, fairness: "strict" });
  await until(async () => (await mutex.inspect()).waiterCount === 1, "a waiter");
  expect(proxy.blackHole("server")).toBe(1);
  await until(() => states.includes("hears"), "an echo over another connection");
  const before = proxy.counts.messages;
  expect(await lease.release()).toBe("released");
  expect(await (await waiting).release()).toBe("released");
  expect(proxy.counts.messages).toBeGreaterThan(before);
}, 150_000);
