/** The contract suite for a count-down latch, which every store must pass. */
import { expect, test } from "vitest";
import { ClosedError, type CountDownLatch, WaitTimeoutError } from "../index.js";
import { endOf, LONG_MS, SHORT_MS, SOON_MS, sleep, until } from "./delays.js";
import { type StoreUnderTest, useScene } from "./subject.js";

/** Registers the tests. Call it inside a `describe` that names the store. */
export function countDownLatchContract(subject: StoreUnderTest): void {
  const scene = useScene(subject, (holdfast, name) => holdfast.mutex(name));
  const first = (): CountDownLatch => scene.holdfast.countDownLatch(scene.name);
  const second = (): CountDownLatch => scene.rivalHoldfast.countDownLatch(scene.name);
  const waiting = (count: number): Promise<void> =>
    until(async () => (await first().inspect()).waiterCount === count, `${count} to wait`);

  test("all waiters pass when the count reaches zero, and not before", async () => {
    expect(await first().trySetCount(3)).toBe(true);
    let passed = 0;
    const waits = [first(), second(), second()].map((latch) =>
      latch.await({ waitMs: LONG_MS, label: "starter" }).then(() => {
        passed += 1;
      }),
    );
    await waiting(3);
    expect(await first().inspect()).toMatchObject({ kind: "count-down-latch", count: 3, initialCount: 3 });
    expect((await first().inspect()).waiters[0]).toMatchObject({ label: "starter" });
    await until(async () => (await first().inspect()).waiters[0]?.pid === process.pid, "the waiter's record");
    expect(await second().countDown()).toBe(2);
    expect(await first().countDown()).toBe(1);
    await sleep(SHORT_MS);
    expect(passed).toBe(0);
    expect(await second().countDown()).toBe(0);
    await Promise.all(waits);
    await waiting(0);
  });

  test("a latch that is open or was never set does not wait", async () => {
    await first().await({ waitMs: 0 });
    expect(await first().count()).toBe(0);
    await first().trySetCount(1);
    await first().countDown();
    await second().await({ waitMs: 0 });
    await second().await({ waitMs: Infinity });
  });

  test("a count can be set again only after it has reached zero", async () => {
    expect(await first().trySetCount(2)).toBe(true);
    expect(await second().trySetCount(5)).toBe(false);
    expect(await first().count()).toBe(2);
    expect(await first().countDown(2)).toBe(0);
    expect(await second().trySetCount(5)).toBe(true);
    expect(await first().count()).toBe(5);
  });

  test("the count never drops below zero, and counting down an unset latch does nothing", async () => {
    expect(await first().countDown()).toBe(0);
    await first().trySetCount(2);
    expect(await first().countDown(7)).toBe(0);
    expect(await first().countDown()).toBe(0);
    expect(await first().count()).toBe(0);
  });

  test("a caller id counts once per count, even from several clients", async () => {
    await first().trySetCount(3);
    expect(await first().countDown(1, { callerId: "part 1" })).toBe(2);
    expect(await second().countDown(1, { callerId: "part 1" })).toBe(2);
    expect(await second().countDown(1, { callerId: "part 2" })).toBe(1);
    expect(await first().countDown()).toBe(0);
    await first().trySetCount(2);
    expect(await second().countDown(1, { callerId: "part 1" })).toBe(1);
    expect(await first().countDown(1, { callerId: "part 1" })).toBe(1);
  });

  test("exactly one of many concurrent count-downs reaches zero", async () => {
    await first().trySetCount(40);
    const left = await Promise.all(
      Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? first() : second()).countDown()),
    );
    expect(left.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, i) => i));
  });

  test("a waiter passes when its count reaches zero, even if a new count follows immediately", async () => {
    for (let i = 0; i < 10; i += 1) {
      expect(await first().trySetCount(1)).toBe(true);
      const wait = second().await({ waitMs: LONG_MS });
      await waiting(1);
      await Promise.all([first().countDown(), first().trySetCount(1)]);
      const startedAtMs = performance.now();
      await wait;
      expect(performance.now() - startedAtMs).toBeLessThan(SOON_MS);
      await first().countDown();
    }
  });

  test("a wait that times out fails with WaitTimeoutError and leaves no waiter behind", async () => {
    await first().trySetCount(1);
    await expect(second().await({ waitMs: 0 })).rejects.toThrow(WaitTimeoutError);
    const startedAtMs = performance.now();
    const error = await endOf(() => second().await({ waitMs: 2 * SHORT_MS }));
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(2 * SHORT_MS - 2);
    expect(error).toMatchObject({ code: "ERR_LOCK_WAIT_TIMEOUT", lockName: scene.name, waitMs: 2 * SHORT_MS });
    await waiting(0);
  });

  test("an aborted wait fails with the reason of the signal and leaves no waiter behind", async () => {
    await first().trySetCount(1);
    const controller = new AbortController();
    const wait = first().await({ waitMs: Infinity, signal: controller.signal });
    await waiting(1);
    const reason = { why: "shutdown" };
    controller.abort(reason);
    await expect(wait).rejects.toBe(reason);
    await waiting(0);
    expect(await first().count()).toBe(1);
  });

  test("close ends waits, and a closed Holdfast cannot count down", async () => {
    await first().trySetCount(1);
    const holdfast = await scene.another();
    const latch = holdfast.countDownLatch(scene.name);
    const wait = latch.await({ waitMs: Infinity });
    wait.catch(() => {});
    await waiting(1);
    await holdfast.close();
    await expect(wait).rejects.toThrow(ClosedError);
    await expect(latch.countDown()).rejects.toThrow(ClosedError);
    expect(await first().count()).toBe(1);
  });

  test("invalid arguments are rejected by name", async () => {
    await expect(first().trySetCount(0)).rejects.toThrow(/count must be a whole number from 1/);
    await expect(first().countDown(1.5)).rejects.toThrow(/by must be/);
    await expect(first().countDown(1, { callerId: "" })).rejects.toThrow(/callerId/);
    expect(() => scene.holdfast.countDownLatch(scene.name, { keepMs: 1 })).toThrow(/keepMs/);
    expect(() => scene.holdfast.countDownLatch("")).toThrow(RangeError);
  });

  test("all keys on the server expire keepMs after their last use", async () => {
    const latch = scene.holdfast.countDownLatch(scene.name, { keepMs: LONG_MS });
    await latch.trySetCount(2);
    await latch.countDown();
    const wait = latch.await({ waitMs: LONG_MS });
    await waiting(1);
    const keys = await scene.server.keysWith(scene.name);
    expect(keys).toHaveLength(3);
    for (const key of keys) {
      const leftMs = await scene.server.pttl(key);
      expect(leftMs, key).toBeGreaterThan(0);
      expect(leftMs, key).toBeLessThanOrEqual(Math.max(LONG_MS, 60_000));
    }
    await latch.countDown();
    await wait;
  });
}
