/** The commands that a lock sends to the server. */
import { expect, test } from "vitest";
import { startMonitor } from "../../../../tests/support/monitor.js";
import { inboxEcho, mutexAcquire, mutexExtend, mutexRelease } from "../../src/generated/scripts.js";
import { LONG_MS, SOON_MS, sleep, until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

test.each([ioredis, nodeRedis, glide])(
  "on $name, an uncontended acquire is one script call, and so is a release",
  async (library) => {
    const { name, server } = scene;
    const holdfast = await scene.client(library);
    // The first use subscribes, writes the client record and loads the scripts.
    await holdfast.mutex(`warm:${name}`).run(async ({ owner }) => {
      const id = owner.split("/")[0] ?? "";
      const listens = async () => String(await server.command("PUBSUB", "NUMSUB", `hf:in:${id}`)).endsWith(",1");
      const isAnnounced = async () => (await server.command("EXISTS", `hf:client:${id}`)) === 1;
      await until(async () => (await listens()) && (await isAnnounced()), "the first use");
    });
    const { sent, stop } = await startMonitor(server);
    await sent();
    const lease = await holdfast.mutex(name).acquire();
    expect((await sent()).map((words) => words.slice(0, 4))).toEqual([
      ["evalsha", scene.hashOf(mutexAcquire), "5", scene.keys.lock],
    ]);
    await lease.release();
    expect((await sent()).map((words) => words.slice(0, 4))).toEqual([
      ["evalsha", scene.hashOf(mutexRelease), "5", scene.keys.lock],
    ]);
    await holdfast.mutex(name).run(() => {});
    const one = await holdfast.mutex(name).tryAcquire();
    expect(await holdfast.mutex(name).tryAcquire()).toBeNull();
    await one?.release();
    expect((await sent()).map(([command, sha1]) => [command, sha1])).toEqual(
      [mutexAcquire, mutexRelease, mutexAcquire, mutexAcquire, mutexRelease].map((script) => [
        "evalsha",
        scene.hashOf(script),
      ]),
    );
    stop();
  },
);

/** Interval after which every waiter re-checks. */
const RECHECK_MS = 3_000;
/** Interval after which a re-check may also check the subscriber connection of its client. */
const ECHO_MS = 2_500;

test("100 waiters send nothing while they wait, then only one release each and confirmations", async () => {
  const { name, server } = scene;
  const [first, second] = [await scene.client(ioredis), await scene.client(nodeRedis)];
  await first.mutex(`warm:${name}`).run(() => second.mutex(`warm2:${name}`).run(() => {}));
  const lease = await first.mutex(name).acquire({ leaseMs: 20 * LONG_MS });
  const queuedAtMs = performance.now();
  const waiting = Array.from({ length: 100 }, (_, i) =>
    (i % 2 === 0 ? first : second).mutex(name).acquire({ waitMs: 4 * LONG_MS, fairness: "strict" }),
  );
  // If an expectation below fails, the test should report that failure and not these rejections.
  for (const each of waiting) each.catch(() => {});
  await scene.queued(100);
  const { sent, stop } = await startMonitor(server);
  await sent();
  // Shorter than the re-check interval, counted from the last request.
  await sleep(SOON_MS);
  const soFar = await sent();
  if (performance.now() - queuedAtMs < RECHECK_MS) expect(soFar).toEqual([]);
  await lease.release();
  await Promise.all(waiting.map(async (each) => (await each).release()));
  const all = (await sent()).map(([command, sha1]) => [command, sha1]);
  const [release, confirmation] = [mutexRelease, mutexExtend].map((script) => ["evalsha", scene.hashOf(script)]);
  expect(all.filter(([, sha1]) => sha1 === scene.hashOf(mutexRelease))).toEqual(
    Array.from({ length: 101 }, () => release),
  );
  // The first hold of each process is confirmed, and so is any that lasts 250 ms on a slow machine.
  const others = all.filter(
    ([command, sha1]) =>
      command !== "script" && [mutexRelease, mutexAcquire, inboxEcho].every((script) => sha1 !== scene.hashOf(script)),
  );
  // On a machine that slow, each waiter re-checks once per interval, and each client checks its inbox.
  const waitedMs = performance.now() - queuedAtMs;
  const echoes = all.filter(([, sha1]) => sha1 === scene.hashOf(inboxEcho));
  expect(echoes.length).toBeLessThanOrEqual(waitedMs < RECHECK_MS ? 0 : 2 * Math.floor(waitedMs / ECHO_MS));
  const rounds = Math.floor(waitedMs / RECHECK_MS);
  expect(all.filter(([, sha1]) => sha1 === scene.hashOf(mutexAcquire)).length).toBeLessThanOrEqual(100 * rounds);
  expect(others.length).toBeGreaterThanOrEqual(2);
  expect(others).toEqual(others.map(() => confirmation));
  stop();
});
