/** Conditions shared by processes, on a real server. No signal is lost or delivered twice. */
import { expect, test } from "vitest";
import { startProgram } from "../../../../tests/support/program.js";
import { conditionSignal, conditionWait } from "../../src/generated/scripts.js";
import { until } from "../../src/testing/delays.js";
import { ioredis, nodeRedis, useFaultScene } from "../faults/scene.js";

const scene = useFaultScene();
const PAIRS = 10_000 * Number(process.env.TEST_LOAD_FACTOR ?? 1);
const CALLERS = 10;

test("two processes that signal 10 000 times wake exactly 10 000 waiters", async () => {
  const { server, name } = scene;
  const programs = [0, 1].map(() =>
    startProgram(new URL("./programs/pairs.mjs", import.meta.url), { port: server.port, name }),
  );
  try {
    await Promise.all(programs.map((program) => program.call("start", { callers: CALLERS })));
    const signalled = await Promise.all(
      programs.map((program) => program.call<number>("signal", { signals: PAIRS / 2 })),
    );
    expect(signalled).toEqual([PAIRS / 2, PAIRS / 2]);
    const condition = (await scene.client(ioredis)).mutex(name).condition("turn");
    await until(async () => (await condition.inspect()).waiterCount === 2 * CALLERS, "all callers to wait again");
    const tokens = (await Promise.all(programs.map((program) => program.call<Float64Array>("wakeUps")))).flatMap(
      (each) => [...each],
    );
    expect(tokens).toHaveLength(PAIRS);
    expect(new Set(tokens).size).toBe(PAIRS);
    await Promise.all(programs.map((program) => program.call("stop")));
    expect((await condition.inspect()).waiterCount).toBe(0);
  } finally {
    await Promise.all(programs.map((program) => program.kill()));
  }
}, 300_000);

test("a signal skips the waiters of a killed process and wakes the next one", async () => {
  const { server, name } = scene;
  const dead = startProgram(new URL("./programs/pairs.mjs", import.meta.url), { port: server.port, name });
  const holdfast = await scene.client(ioredis);
  const mutex = holdfast.mutex(name);
  const condition = mutex.condition("turn");
  try {
    await dead.call("start", { callers: 3 });
    await until(async () => (await condition.inspect()).waiterCount === 3, "the other process to wait");
  } finally {
    await dead.kill();
  }
  const living = condition.wait(await mutex.acquire());
  living.catch(() => {});
  await until(async () => (await condition.inspect()).waiterCount === 4, "this process to wait");
  const lease = await mutex.acquire();
  expect(await condition.signal(lease)).toBe(1);
  expect((await condition.inspect()).waiterCount).toBe(0);
  await lease.release();
  await (await living).release();
});

test("a waiter wakes when the lease of a signaler that crashed after its signal expires", async () => {
  const { name } = scene;
  const holdfast = await scene.client(ioredis);
  const mutex = holdfast.mutex(name);
  const condition = mutex.condition("turn");
  const waiting = condition.wait(await mutex.acquire(), { waitMs: 15_000 });
  waiting.catch(() => {});
  await until(async () => (await condition.inspect()).waiterCount === 1, "the waiter");
  const signaller = (await scene.client(ioredis)).mutex(name);
  const lease = await signaller.acquire({ leaseMs: 2_000, renew: false });
  expect(await signaller.condition("turn").signal(lease)).toBe(1);
  // The signaler never releases, so its lease expires.
  const next = await waiting;
  expect(next.token).toBeGreaterThan(lease.token);
  await next.release();
});

test("a waiter whose connections break while it is signaled still wakes", async () => {
  const { name, server } = scene;
  const proxy = await scene.proxy();
  const mutex = (await scene.client(ioredis, {}, proxy.port)).mutex(name);
  const signaller = (await scene.client(ioredis)).mutex(name);
  for (let i = 0; i < 5; i += 1) {
    const waiting = mutex.condition("turn").wait(await mutex.acquire(), { waitMs: 15_000 });
    waiting.catch(() => {});
    const condition = signaller.condition("turn");
    await until(async () => (await condition.inspect()).waiterCount === 1, "the waiter");
    const lease = await signaller.acquire();
    for (const client of String(await server.command("CLIENT", "LIST", "TYPE", "pubsub")).matchAll(/\bid=(\d+)/g)) {
      await server.command("CLIENT", "KILL", "ID", client[1] ?? "");
    }
    await condition.signal(lease);
    await lease.release();
    await (await waiting).release();
  }
});

for (const library of [ioredis, nodeRedis]) {
  test(`a wait and a signal whose replies are lost count once: ${library.name}`, async () => {
    const { name } = scene;
    const proxy = await scene.proxy();
    const mutex = (await scene.client(library, {}, proxy.port)).mutex(name);
    const others = (await scene.client(ioredis)).mutex(name);
    const condition = others.condition("turn");
    const cut = (script: { readonly sha1: string }): Promise<void> =>
      proxy.cutBeforeReply((words) => words.includes(script.sha1));

    // Run once without a fault so that the server has loaded the scripts.
    const warm = await mutex.acquire();
    await mutex.condition("turn").signal(warm);
    await expect(mutex.condition("turn").wait(warm, { waitMs: 1 })).rejects.toThrow();

    const lease = await mutex.acquire();
    const cutWait = cut(conditionWait);
    const waiting = [mutex.condition("turn").wait(lease, { waitMs: 15_000 })];
    await cutWait;
    for (let i = 0; i < 2; i += 1) {
      waiting.push(condition.wait(await others.acquire({ waitMs: 15_000 }), { waitMs: 15_000 }));
      await until(async () => (await condition.inspect()).waiterCount === i + 2, `${i + 2} waiters`);
    }

    const signaller = await mutex.acquire();
    const cutSignal = cut(conditionSignal);
    const signalling = mutex.condition("turn").signal(signaller);
    await cutSignal;
    expect(await signalling).toBe(1);
    expect((await condition.inspect()).waiterCount).toBe(2);
    expect(await mutex.condition("turn").signalAll(signaller)).toBe(2);
    await signaller.release();
    const tokens: number[] = [];
    await Promise.all(
      waiting.map(async (each) => {
        const woken = await each;
        tokens.push(woken.token);
        await woken.release();
      }),
    );
    expect(new Set(tokens).size).toBe(3);
  });
}
