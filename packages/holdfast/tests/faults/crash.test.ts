/** Processes that crash while they hold a lock or wait for it. */
import { expect, test } from "vitest";
import { startMonitor } from "../../../../tests/support/monitor.js";
import { mutexAcquire, mutexRelease } from "../../src/generated/scripts.js";
import { BRIEF_LEASE_MS, LONG_MS, SOON_MS, until } from "../../src/testing/delays.js";
import { type Acquired, sharedClockMs } from "./programs/programs.js";
import { ioredis, outcomeOf, useFaultScene } from "./scene.js";

const scene = useFaultScene();

/** Gives each of many callers in one process its own place in the queue. */
const STRICT = { waitMs: LONG_MS, leaseMs: LONG_MS, fairness: "strict" };
/** Long enough for the test to read how much of the lease is left. */
const LEASE_MS = 4 * BRIEF_LEASE_MS;

test.each([
  { death: "is killed", die: "kill", end: { code: null, signal: "SIGKILL" } },
  { death: "exits without a release", die: "exit", end: { code: 0, signal: null } },
  { death: "ends with an uncaught error", die: "fail", end: { code: 1, signal: null } },
])("when a holder $death, the next waiter is granted within the holder's lease plus one second", async (how) => {
  const { server, name, keys } = scene;
  const worker = scene.worker();
  const [second, third] = await Promise.all([scene.client(ioredis), scene.client(ioredis)]);
  const dying = await worker.call<Acquired>("acquire", { name, as: "it", options: { leaseMs: LEASE_MS } });
  const next = second.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LEASE_MS });
  await scene.queued(1);
  const last = third.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LEASE_MS });
  await scene.queued(2);

  if (how.die === "kill") await worker.kill();
  else void worker.call(how.die).catch(() => {});
  expect(await worker.ended).toEqual(how.end);
  const diedAtMs = sharedClockMs();
  const restMs = Number(await server.command("PTTL", keys.lock));
  expect(await scene.holder(), "the dead still hold").toBe(dying.owner);
  expect(restMs).toBeGreaterThan(0);

  const lease = await next;
  expect(sharedClockMs() - diedAtMs).toBeLessThan(LEASE_MS + SOON_MS / 2);
  expect(lease.token).toBeGreaterThan(dying.token);
  expect(await scene.holder()).toBe(lease.owner);
  expect(await lease.release()).toBe("released");
  const after = await last;
  expect(after.token).toBeGreaterThan(lease.token);
  expect(await after.release()).toBe("released");
});

test("a release skips any number of killed waiters and grants the next live one", async () => {
  const { server, name } = scene;
  const head = scene.worker();
  const crowd = scene.worker();
  const holder = await scene.client(ioredis);
  const [second, third] = await Promise.all([scene.client(ioredis), scene.client(ioredis)]);
  const lease = await holder.mutex(name).acquire({ leaseMs: LONG_MS });

  await head.call("queue", { name, count: 1, options: STRICT });
  await scene.queued(1);
  await crowd.call("queue", { name, count: 100, options: STRICT });
  await scene.queued(101);
  const nextLive = second.mutex(name).acquire({ waitMs: LONG_MS });
  await scene.queued(102);
  const lastLive = third.mutex(name).acquire({ waitMs: LONG_MS });
  await scene.queued(103);
  // The server now knows all scripts, so the commands counted below belong to this hand-off alone.
  await holder.mutex(`warm:${name}`).run(() => {});
  await Promise.all([head.kill(), crowd.kill()]);
  expect([(await head.ended).signal, (await crowd.ended).signal]).toEqual(["SIGKILL", "SIGKILL"]);

  const { sent, stop } = await startMonitor(server);
  await sent();
  expect(await lease.release()).toBe("released");
  const holderAtRelease = await scene.holder();
  const live = await nextLive;
  expect(holderAtRelease).toBe(live.owner);
  const scripts = (await sent()).map(([, sha1]) => sha1);
  stop();
  expect(scripts.filter((sha1) => sha1 === scene.hashOf(mutexRelease))).toHaveLength(1);
  expect(
    scripts.filter((sha1) => sha1 === scene.hashOf(mutexAcquire)),
    "the release alone did it",
  ).toEqual([]);
  expect(await server.command("ZCARD", scene.keys.queue)).toBe(1);
  expect(await live.release()).toBe("released");
  const last = await lastLive;
  expect(last.token).toBeGreaterThan(live.token);
  await last.release();
});

test("a release to a queue of crashed waiters leaves the lock free immediately", async () => {
  const { name } = scene;
  const worker = scene.worker();
  const holder = await scene.client(ioredis);
  const lease = await holder.mutex(name).acquire({ leaseMs: LONG_MS });
  await worker.call("queue", { name, count: 20, options: STRICT });
  await scene.queued(20);
  await worker.kill();
  await lease.release();
  expect(await scene.holder()).toBeNull();
  const again = await holder.mutex(name).acquire({ waitMs: 0 });
  await again.release();
});

test("when a holder crashes, the first live waiter behind crashed ones is granted", async () => {
  const { name } = scene;
  const [holder, dead] = [scene.worker(), scene.worker()];
  const survivor = await scene.client(ioredis);
  // Starting a process takes time, and the lease must not expire meanwhile.
  await dead.call("ready");
  await holder.call("acquire", { name, as: "it", options: { leaseMs: LEASE_MS } });
  await dead.call("queue", { name, count: 10, options: STRICT });
  await scene.queued(10);
  const next = outcomeOf(survivor.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LEASE_MS }));
  await scene.queued(11);
  await Promise.all([dead.kill(), holder.kill()]);
  const diedAtMs = performance.now();
  const { value: lease, error, atMs } = await next;
  expect(error).toBeUndefined();
  expect(atMs - diedAtMs).toBeLessThan(LEASE_MS + SOON_MS / 2);
  expect(await lease?.release()).toBe("released");
  await until(async () => (await scene.holder()) === null, "the lock to be free");
});
