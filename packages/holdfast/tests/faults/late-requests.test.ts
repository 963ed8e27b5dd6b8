/** Requests and grants that arrive after their caller has stopped waiting for them. */
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import type { Store } from "../../src/core/store.js";
import { mutexAcquire } from "../../src/generated/scripts.js";
import { StoreError } from "../../src/index.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS, SHORT_MS, SOON_MS, sleep, until } from "../../src/testing/delays.js";
import { ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

/** A lease that a test lets expire, long enough that the requests in between are answered before its end. */
const LEASE_MS = SOON_MS;

/** A lease that does not expire while a waiter waits for `LONG_MS`. */
const ENDLESS_MS = 10 * LONG_MS;

/** Matches the acquire request of this test's lock, and copies its words to `copy`. */
function acquireOf(copy: string[] = []): (words: readonly string[]) => boolean {
  return (words) => {
    const matches =
      words[0]?.toUpperCase() === "EVALSHA" &&
      words[1] === scene.hashOf(mutexAcquire) &&
      words.includes(scene.keys.lock);
    if (matches) copy.splice(0, copy.length, ...words);
    return matches;
  };
}

test.each([ioredis, nodeRedis])(
  "on $name, a request that reaches the server twice makes one grant",
  async (library) => {
    const { name } = scene;
    const proxy = await scene.proxy();
    const holdfast = await scene.client(library, {}, proxy.port);
    await holdfast.mutex(`warm:${name}`).run(() => {});
    const struck = proxy.duplicate(acquireOf());
    const lease = await holdfast.mutex(name).acquire({ leaseMs: LONG_MS });
    await struck;
    expect(await scene.token()).toBe(lease.token);
    expect(await lease.release()).toBe("released");
    expect(await scene.holder()).toBeNull();
  },
);

test("a request that arrives after its caller has given up is undone", async () => {
  const { name, keys, server } = scene;
  const proxy = await scene.proxy();
  const [slow, other] = [await scene.client(ioredis, {}, proxy.port), await scene.client(ioredis)];
  await slow.mutex(`warm:${name}`).run(() => {});
  const { reached, release } = proxy.hold(acquireOf());
  const attempt = slow.mutex(name).tryAcquire({ leaseMs: ENDLESS_MS });
  await reached;
  await expect(attempt).rejects.toMatchObject({ code: "ERR_LOCK_STORE", mayHaveRun: true });
  release();
  // Long before that late lease would expire.
  const lease = await other.mutex(name).acquire({ waitMs: LONG_MS });
  expect(proxy.counts.held).toBe(1);
  expect(await lease.release()).toBe("released");
  await until(async () => (await server.command("EXISTS", keys.lock, keys.queue)) === 0, "nothing to be left");
});

test("a late copy of a finished request makes no second holder and ends with its lease", async () => {
  const { name, server } = scene;
  const proxy = await scene.proxy();
  const [first, second] = [await scene.client(ioredis, {}, proxy.port), await scene.client(ioredis)];
  await first.mutex(`warm:${name}`).run(() => {});
  const copy: string[] = [];
  const struck = proxy.duplicate(acquireOf(copy));
  const lease = await first.mutex(name).acquire({ leaseMs: LEASE_MS });
  await struck;
  const { owner, token } = lease;
  await lease.release();

  const lateToken = Number(await server.command(...copy));
  expect(lateToken).toBeGreaterThan(token);
  expect(await scene.holder()).toBe(owner);
  expect(lease.validForMs(), "whoever asked knows nothing of it").toBe(0);
  const arrivedAtMs = performance.now();
  const next = await second.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LEASE_MS });
  expect(performance.now() - arrivedAtMs).toBeLessThan(LEASE_MS + SOON_MS);
  expect(next.token).toBeGreaterThan(lateToken);

  // Now the copy arrives while the lock is held: it queues, and no caller waits for its grant.
  copy[copy.length - 2] = "1";
  expect(Array.isArray(await server.command(...copy))).toBe(true);
  await scene.queued(1);
  const last = second.mutex(name).acquire({ waitMs: LONG_MS });
  await scene.queued(2);
  const releasedAtMs = performance.now();
  expect(await next.release()).toBe("released");
  const after = await last;
  expect(performance.now() - releasedAtMs).toBeLessThan(2 * LEASE_MS + SOON_MS);
  expect(await after.release()).toBe("released");
  expect(await scene.holder()).toBeNull();
});

test("a lost lease is reported as lost even if a late copy of its request acquires the lock again", async () => {
  const { name, server } = scene;
  const proxy = await scene.proxy();
  const [first, second] = [await scene.client(ioredis, {}, proxy.port), await scene.client(ioredis)];
  await first.mutex(`warm:${name}`).run(() => {});
  const copy: string[] = [];
  const struck = proxy.duplicate(acquireOf(copy));
  const lease = await first.mutex(name).acquire({ leaseMs: LEASE_MS, renew: false });
  await struck;
  const between = await second.mutex(name).acquire({ waitMs: LONG_MS });
  await between.release();
  expect(Number(await server.command(...copy))).toBeGreaterThan(between.token);
  expect(await scene.holder()).toBe(lease.owner);
  await expect(lease.release()).rejects.toMatchObject({ code: "ERR_LOCK_LEASE_LOST" });
  const next = await second.mutex(name).acquire({ waitMs: LEASE_MS + LONG_MS });
  expect(await next.release()).toBe("released");
});

test("a waiter that aborts while its grant is on the way passes the lock on immediately", async () => {
  const { name } = scene;
  const proxy = await scene.proxy();
  // The proxy delays only the messages to the waiter, not its requests.
  const waiter = await scene.client(ioredis, { subscriber: () => new Redis({ port: proxy.port }) });
  const [holder, other] = [await scene.client(ioredis), await scene.client(ioredis)];
  const lease = await holder.mutex(name).acquire({ leaseMs: LONG_MS });
  const abort = new AbortController();
  const waiting = waiter.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LONG_MS, signal: abort.signal });
  await scene.queued(1);
  const behind = other.mutex(name).acquire({ waitMs: LONG_MS });
  await scene.queued(2);
  proxy.stall();
  await lease.release();
  const granted = await scene.holder();

  const reason = new Error("enough");
  abort.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  const next = await behind;
  expect(granted, "the one that gave up had been granted").not.toBe(next.owner);
  proxy.resume();
  // The grant arrives after its waiter has gone, and must not be taken for another grant.
  const again = waiter.mutex(name).acquire({ waitMs: LONG_MS });
  await scene.queued(1);
  expect(await scene.holder()).toBe(next.owner);
  await next.release();
  expect(await (await again).release()).toBe("released");
});

test("a waiter that times out while its grant is on the way passes the lock on immediately", async () => {
  const { name } = scene;
  const proxy = await scene.proxy();
  const waiter = await scene.client(ioredis, { subscriber: () => new Redis({ port: proxy.port }) });
  const [holder, other] = [await scene.client(ioredis), await scene.client(ioredis)];
  const lease = await holder.mutex(name).acquire({ leaseMs: LONG_MS });
  // Shorter than the interval of 3 s after which the waiter asks the server, and would find its grant.
  const waiting = waiter.mutex(name).acquire({ waitMs: SOON_MS, leaseMs: LONG_MS });
  const refused = expect(waiting).rejects.toMatchObject({ code: "ERR_LOCK_ACQUIRE_TIMEOUT" });
  await scene.queued(1);
  const behind = other.mutex(name).acquire({ waitMs: LONG_MS });
  await scene.queued(2);
  proxy.stall();
  await lease.release();
  const granted = await scene.holder();
  await refused;
  const next = await behind;
  expect(granted).not.toBe(next.owner);
  proxy.resume();
  expect(await next.release()).toBe("released");
});

test.each([
  { how: "while its caller waits for the reply", timeoutMs: LONG_MS },
  { how: "long after its caller has given up", timeoutMs: 2 * SHORT_MS },
])(
  "a request that arrives after its claim was granted and released, $how, leaves nothing behind",
  async ({ timeoutMs }) => {
    const { name, server, keys } = scene;
    const holder = await scene.client(ioredis);
    // Requests can be reordered if a client has several connections or resends a script after NOSCRIPT.
    const store = storeFor((await ioredis.connect(server.port)).options.redis);
    let questions = 0;
    let letGo = (): void => {};
    const overtaken = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const run: Store["run"] = async (script, scriptKeys, args, callTimeoutMs) => {
      if (script.name !== mutexAcquire.name || !scriptKeys.includes(keys.lock)) {
        return store.run(script, scriptKeys, args, callTimeoutMs);
      }
      questions += 1;
      // The first gets NOSCRIPT, the second joins the queue, the third is the re-check.
      if (questions !== 3) return store.run(script, scriptKeys, args, callTimeoutMs);
      const answer = overtaken.then(() => store.run(script, scriptKeys, args, callTimeoutMs));
      const givenUp = sleep(timeoutMs).then(() => {
        throw new StoreError(name, { mayHaveRun: true, transient: true, cause: "no answer" });
      });
      return Promise.race([answer, givenUp]);
    };
    const waiter = await scene.client({
      name: "several connections",
      connect: async () => ({ options: { store: { ...store, run } }, disconnect: () => store.close() }),
    });
    const lease = await holder.mutex(name).acquire({ leaseMs: LEASE_MS });
    const waiting = waiter.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: ENDLESS_MS });
    await scene.queued(1);
    await until(() => questions >= 3, "the re-check at the end of the lease that it was told of");
    expect(await lease.release()).toBe("released");
    const next = await waiting;
    expect(await next.release()).toBe("released");
    letGo();
    await overtaken;

    // Long before the lease that the late request would begin expires.
    const again = await holder.mutex(name).acquire({ waitMs: LONG_MS });
    await again.release();
    await until(async () => (await server.command("EXISTS", keys.lock, keys.queue)) === 0, "nothing to be left");
  },
);
