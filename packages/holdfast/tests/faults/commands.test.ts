/** What a lock costs the server: which commands are sent, and which are not. */
import { expect, test } from "vitest";
import { startMonitor } from "../../../../tests/support/monitor.js";
import { mutexAcquire, mutexExtend, mutexRelease } from "../../src/generated/scripts.js";
import { LONG_MS, SOON_MS, sleep, until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

test.each([ioredis, nodeRedis, glide])(
  "on $name an uncontended acquire is one script call, and a release is one",
  async (library) => {
    const { name, server } = scene;
    const holdfast = await scene.client(library);
    // The first use listens, announces itself and teaches the server the scripts.
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
      ["evalsha", mutexAcquire.sha1, "5", scene.keys.lock],
    ]);
    await lease.release();
    expect((await sent()).map((words) => words.slice(0, 4))).toEqual([
      ["evalsha", mutexRelease.sha1, "5", scene.keys.lock],
    ]);
    await holdfast.mutex(name).run(() => {});
    const one = await holdfast.mutex(name).tryAcquire();
    expect(await holdfast.mutex(name).tryAcquire()).toBeNull();
    await one?.release();
    expect((await sent()).map(([command, sha1]) => [command, sha1])).toEqual(
      [mutexAcquire, mutexRelease, mutexAcquire, mutexAcquire, mutexRelease].map(({ sha1 }) => ["evalsha", sha1]),
    );
    stop();
  },
);

/** After so long a waiter asks again, whatever it was told. */
const RECHECK_MS = 3_000;

test("a hundred waiters send nothing while they wait, one release each, and confirmations where a hold may be long", async () => {
  const { name, server } = scene;
  const [first, second] = [await scene.client(ioredis), await scene.client(nodeRedis)];
  await first.mutex(`warm:${name}`).run(() => second.mutex(`warm2:${name}`).run(() => {}));
  const lease = await first.mutex(name).acquire({ leaseMs: 4 * LONG_MS });
  const queuedAtMs = performance.now();
  const waiting = Array.from({ length: 100 }, (_, i) =>
    (i % 2 === 0 ? first : second).mutex(name).acquire({ waitMs: LONG_MS, fairness: "strict" }),
  );
  // If an expectation below fails, that is the failure to be told.
  for (const each of waiting) each.catch(() => {});
  await scene.queued(100);
  const { sent, stop } = await startMonitor(server);
  await sent();
  // Shorter than the time after which a waiter asks again whatever it was told, counted from its last question.
  await sleep(SOON_MS);
  const soFar = await sent();
  if (performance.now() - queuedAtMs < RECHECK_MS) expect(soFar).toEqual([]);
  await lease.release();
  await Promise.all(waiting.map(async (each) => (await each).release()));
  const all = (await sent()).map(([command, sha1]) => [command, sha1]);
  const [release, confirmation] = [mutexRelease, mutexExtend].map(({ sha1 }) => ["evalsha", sha1]);
  expect(all.filter(([, sha1]) => sha1 === mutexRelease.sha1)).toEqual(Array.from({ length: 101 }, () => release));
  // The first hold of each process is confirmed, and any that a slow machine makes last for 250 ms.
  const others = all.filter(
    ([command, sha1]) => command !== "script" && sha1 !== mutexRelease.sha1 && sha1 !== mutexAcquire.sha1,
  );
  // On a machine that is that slow each waiter asks again by itself, once in that time.
  const rounds = Math.floor((performance.now() - queuedAtMs) / RECHECK_MS);
  expect(all.filter(([, sha1]) => sha1 === mutexAcquire.sha1).length).toBeLessThanOrEqual(100 * rounds);
  expect(others.length).toBeGreaterThanOrEqual(2);
  expect(others).toEqual(others.map(() => confirmation));
  stop();
});
