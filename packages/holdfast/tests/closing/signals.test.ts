/** Processes that receive a signal to end hand over their locks safely. */
import { expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../../tests/support/program.js";
import { closeOnSignal } from "../../src/index.js";
import { ioredis, useFaultScene } from "../faults/scene.js";

const scene = useFaultScene();
// A process starts slowly on a busy machine.
const slowly = { timeout: 60_000 };

const start = (graceMs: number): Program =>
  startProgram(new URL("./programs/holder.mjs", import.meta.url), { port: scene.server.port, graceMs });

test("a process with a hundred leases hands them over on SIGTERM and exits", slowly, async ({ annotate }) => {
  const holder = start(60_000);
  const names = Array.from({ length: 100 }, (_, i) => `${scene.name}:${i}`);
  // The leases outlast the test, so a waiter can get a lock only if the process releases it.
  await holder.call("work", { names, heeds: true, leaseMs: 600_000 });
  const holdfast = await scene.client(ioredis);
  const grantedAtMs: number[] = [];
  const next = names.map(async (name) => {
    const lease = await holdfast.mutex(name).acquire({ waitMs: 300_000 });
    grantedAtMs.push(performance.now());
    return lease;
  });
  const waiters = async (): Promise<number> => {
    const all = await Promise.all(names.map((name) => holdfast.mutex(name).inspect()));
    return all.reduce((sum, { waiterCount }) => sum + waiterCount, 0);
  };
  await vi.waitFor(async () => expect(await waiters()).toBe(100), slowly);
  const closed = holder.heard("closed");
  const toldAtMs = performance.now();
  process.kill(holder.pid, "SIGTERM");
  const leases = await Promise.all(next);
  expect(await closed).toEqual({ released: 100, unsettled: [] });
  expect(await holder.ended, holder.complaints).toEqual({ code: 0, signal: null });
  await annotate(`the last of 100 was granted ${Math.round(Math.max(...grantedAtMs) - toldAtMs)} ms after SIGTERM`);
  await Promise.all(leases.map((lease) => lease.release()));
});

test("work that ignores its signal keeps its lock, and a second signal ends the wait for it", async () => {
  const holder = start(600_000);
  const [deaf, heeding] = [`${scene.name}:deaf`, `${scene.name}:heeding`];
  await holder.call("work", { names: [deaf], heeds: false });
  await holder.call("work", { names: [heeding], heeds: true });
  const holdfast = await scene.client(ioredis);
  const next = holdfast.mutex(heeding).acquire({ waitMs: 30_000 });
  process.kill(holder.pid, "SIGTERM");
  await (await next).release();
  expect((await holdfast.mutex(deaf).inspect()).holders).toMatchObject([{ pid: holder.pid }]);
  const closed = holder.heard("closed");
  process.kill(holder.pid, "SIGINT");
  expect(await closed).toEqual({ released: 1, unsettled: [deaf] });
  expect(await holder.ended, holder.complaints).toEqual({ code: 0, signal: null });
  // The lock of the unfinished work was not granted to another client.
  expect((await holdfast.mutex(deaf).inspect()).holders).toMatchObject([{ pid: holder.pid }]);
});

test("a waiting process that receives SIGTERM leaves the queue", slowly, async () => {
  const holdfast = await scene.client(ioredis);
  const held = await holdfast.mutex(scene.name).acquire({ leaseMs: 60_000 });
  const waiter = start(60_000);
  await waiter.call("wait", { name: scene.name });
  await scene.queued(1);
  const other = await scene.client(ioredis);
  const next = other.mutex(scene.name).acquire({ waitMs: 60_000 });
  await scene.queued(2);
  const closed = waiter.heard("closed");
  process.kill(waiter.pid, "SIGTERM");
  expect(await closed).toEqual({ released: 0, unsettled: [] });
  await scene.queued(1);
  await held.release();
  await (await next).release();
  expect(await waiter.ended, waiter.complaints).toEqual({ code: 0, signal: null });
});

test("the lock of a killed process is granted when its lease expires, and not earlier", slowly, async () => {
  const holder = start(60_000);
  const leaseMs = 2_000;
  await holder.call("work", { names: [scene.name], heeds: true, leaseMs });
  const holdfast = await scene.client(ioredis);
  const next = holdfast.mutex(scene.name).acquire({ waitMs: 60_000 });
  await scene.queued(1);
  await holder.kill();
  const askedAtMs = Date.now();
  const { holders } = await holdfast.mutex(scene.name).inspect();
  const endsAtMs = askedAtMs + (holders[0]?.leaseLeftMs ?? 0);
  const lease = await next;
  // The token is at least the server's time of the grant in µs. The tolerance covers rounding to whole ms.
  expect(lease.token / 1_000).toBeGreaterThanOrEqual(endsAtMs - 100);
  await lease.release();
});

test("closeOnSignal handles signals only until it is stopped or Holdfast has closed", async () => {
  const before = process.listenerCount("SIGUSR2");
  const holdfast = await scene.client(ioredis);
  expect(() => closeOnSignal(holdfast, ["SIGUSR2"], { graceMs: -1 })).toThrow(RangeError);
  expect(process.listenerCount("SIGUSR2")).toBe(before);
  const stop = closeOnSignal(holdfast, ["SIGUSR2"], { graceMs: 1_000 });
  expect(process.listenerCount("SIGUSR2")).toBe(before + 1);
  stop();
  expect(process.listenerCount("SIGUSR2")).toBe(before);
  const closed = new Promise((resolve) => closeOnSignal(holdfast, ["SIGUSR2"], { onClosed: resolve }));
  process.kill(process.pid, "SIGUSR2");
  expect(await closed).toEqual({ released: [], unsettled: [] });
  expect(process.listenerCount("SIGUSR2")).toBe(before);
});

test.each<[string, readonly unknown[], RegExp]>([
  ["without signals", [undefined], /^signals must be an array of names such as "SIGTERM"; got undefined$/],
  [
    "with a name that is not in an array",
    ["SIGUSR2"],
    /^signals must be an array of names such as "SIGTERM"; got "SIGUSR2"$/,
  ],
  ["with a value that is not a name", [["SIGUSR2", undefined]], /^signals must .*; got undefined$/],
  ["with an unknown signal name", [["SIGUSR2", "SIGTREM"]], /^signals must .*; got "SIGTREM"$/],
  ["with a callback that is not a function", [["SIGUSR2"], { onClosed: 1 }], /^onClosed must be a function; got 1$/],
  ["with a signal that cannot be handled", [["SIGUSR2", "SIGKILL"]], /EINVAL/],
  ["with options that are null", [["SIGUSR2"], null], /^options must be an object with graceMs, onClosed; got null$/],
  [
    "with an unknown option",
    [["SIGUSR2"], { grace: 1 }],
    /no option "grace"; did you mean graceMs\? The options are graceMs, onClosed$/,
  ],
])("closeOnSignal %s throws without adding a listener", async (_, given, message) => {
  const args = [await scene.client(ioredis), ...given] as unknown as Parameters<typeof closeOnSignal>;
  const before = process.listenerCount("SIGUSR2");
  expect(() => closeOnSignal(...args)).toThrow(message);
  expect(process.listenerCount("SIGUSR2")).toBe(before);
});

test("a lease whose work still runs is not released, even after a second signal", async () => {
  const holdfast = await scene.client(ioredis);
  const lease = await holdfast.mutex(scene.name).acquire({ leaseMs: 600_000 });
  const aborted = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
  const closed = new Promise((resolve) => closeOnSignal(holdfast, ["SIGUSR2"], { onClosed: resolve }));
  process.kill(process.pid, "SIGUSR2");
  await aborted;
  const other = await scene.client(ioredis);
  expect((await other.mutex(scene.name).inspect()).holders).toMatchObject([{ owner: lease.owner }]);
  process.kill(process.pid, "SIGUSR2");
  expect(await closed).toMatchObject({ released: [], unsettled: [{ name: scene.name }] });
  expect((await other.mutex(scene.name).inspect()).holders).toMatchObject([{ owner: lease.owner }]);
});
