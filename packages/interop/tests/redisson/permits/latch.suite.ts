/** Redisson's count-down latch, shared with a Java peer. */
import { randomUUID } from "node:crypto";
import { WaitTimeoutError } from "holdfast";
import { expect, test } from "vitest";
import { BY_MESSAGE, type TwoSides, untilHeard } from "./peer.js";

/** @param sides  called when a test runs */
export function latchSuite(sides: () => TwoSides): void {
  test.each([
    ["a name without braces", (id: string) => id],
    ["a hash tag at the end", (id: string) => `${id}:{42}`],
    ["a hash tag in front", (id: string) => `{${id}}x`],
  ])("either side can count down to zero and wake all waiters: %s", async (_, nameOf) => {
    const { peer, redis, process, heard } = sides();
    const name = nameOf(randomUUID());
    const channel = `redisson_countdownlatch__channel__{${name}}`;
    const latch = process().redisson.countDownLatch(name, BY_MESSAGE);
    for (const [set, last] of [
      [() => latch.trySetCount(2), () => peer.call("latch.countDown", { name })],
      [() => peer.call("latch.trySetCount", { name, count: 2 }), () => latch.countDown()],
    ] as const) {
      expect(await set()).toBe(true);
      expect(await set()).toBe(false);
      expect(await redis.get(name)).toBe("2");
      const theirs = peer.call("latch.await", { name, waitMs: 20_000 });
      const ours = [latch.await(), latch.await(), process().redisson.countDownLatch(name, BY_MESSAGE).await()];
      // Each process has one subscriber connection.
      await untilHeard({ redis }, channel, 3);
      expect(await latch.countDown()).toBe(1);
      expect(await latch.getCount()).toBe(1);
      expect(await peer.call<number>("latch.getCount", { name })).toBe(1);
      await last();
      await Promise.all(ours);
      expect(await theirs).toBe(true);
      expect(await redis.exists(name)).toBe(0);
      expect(await heard()).toEqual([`${channel} 1`, `${channel} 0`]);
      await latch.await({ waitMs: 0 });
    }
  });

  test("a wait ends at its time limit on either side", async () => {
    const { peer, process } = sides();
    const name = randomUUID();
    const latch = process().redisson.countDownLatch(name);
    await latch.trySetCount(1);
    expect(await peer.call("latch.await", { name, waitMs: 30 })).toBe(false);
    await expect(latch.await({ waitMs: 30 })).rejects.toThrow(WaitTimeoutError);
    await expect(latch.await({ signal: AbortSignal.timeout(30) })).rejects.toThrow("aborted");
  });

  test("counting down a missing latch changes nothing and publishes nothing", async () => {
    const { peer, redis, process, heard } = sides();
    const name = randomUUID();
    const latch = process().redisson.countDownLatch(name);
    await heard();
    expect(await latch.countDown()).toBe(0);
    await peer.call("latch.countDown", { name });
    expect(await redis.exists(name)).toBe(0);
    expect(await heard()).toEqual([]);
    expect(await latch.delete()).toBe(false);
  });

  test("deleting a latch in Node wakes waiters on both sides, and deleting it in Java wakes Node's waiters", async () => {
    const { peer, redis, process } = sides();
    const name = randomUUID();
    const channel = `redisson_countdownlatch__channel__{${name}}`;
    const latch = process().redisson.countDownLatch(name, BY_MESSAGE);
    await latch.trySetCount(7);
    const theirs = peer.call("latch.await", { name, waitMs: 20_000 });
    const ours = latch.await();
    await untilHeard({ redis }, channel, 2);
    expect(await latch.delete()).toBe(true);
    await ours;
    expect(await theirs).toBe(true);

    await latch.trySetCount(7);
    const again = latch.await();
    await untilHeard({ redis }, channel, 1);
    expect(await peer.call("latch.delete", { name })).toBe(true);
    await again;
  });

  test("opens for all waiters every time, with both sides setting and counting at random", async () => {
    const { peer, process, contendMs, tell } = sides();
    const name = randomUUID();
    const one = process().redisson.countDownLatch(name, BY_MESSAGE);
    const other = process().redisson.countDownLatch(name, BY_MESSAGE);
    const bound = { waitMs: 20_000 };
    const waiters = [
      () => one.await(bound),
      () => other.await(bound),
      async () => expect(await peer.call("latch.await", { name, ...bound })).toBe(true),
      async () => expect(await peer.call("latch.await", { name, ...bound })).toBe(true),
    ];
    const counters: readonly (() => Promise<unknown>)[] = [
      () => one.countDown(),
      () => other.countDown(),
      () => peer.call("latch.countDown", { name }),
    ];
    const anyOf = <Item>(items: readonly Item[]): Item => items[Math.floor(Math.random() * items.length)] as Item;
    const within = (ms: number): Promise<void> => new Promise((go) => setTimeout(go, Math.random() * ms));
    const endMs = performance.now() + contendMs;
    let [opened, longestMs] = [0, 0];
    while (performance.now() < endMs) {
      const count = 1 + Math.floor(Math.random() * 4);
      const setters = [() => one.trySetCount(count), () => peer.call("latch.trySetCount", { name, count })];
      expect(await anyOf(setters)()).toBe(true);
      const waiting = Promise.all(waiters.map((wait) => within(20).then(wait)));
      waiting.catch(() => {});
      await Promise.all(Array.from({ length: count }, () => within(30).then(anyOf(counters))));
      const openMs = performance.now();
      await waiting;
      longestMs = Math.max(longestMs, performance.now() - openMs);
      opened += 1;
    }
    tell?.("countDownLatch", { opened, longestMs });
    expect(opened).toBeGreaterThan(0);
  });
}
