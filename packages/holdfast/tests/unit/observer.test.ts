/** When an observer reads the state, and which states it yields. On a manual clock. */
import { beforeEach, describe, expect, test } from "vitest";
import { Followed } from "./followed.js";
import { settle } from "./manual-runtime.js";
import { Answer, lost, ScriptedStore, watch } from "./scripted-lock.js";

/** Half of the longest jitter, because these tests fix the random number. */
const JITTER_MS = 10;

let followed: Followed;
beforeEach(() => {
  followed = new Followed();
});

describe("an observer", () => {
  test("reads the current state at the first next(), and sends nothing before", async () => {
    const states = followed.observe();
    await settle();
    expect([followed.reads, followed.subscribers]).toEqual([[], []]);
    expect(await states.next()).toEqual({ done: false, value: "state 1" });
    expect([...followed.timeouts]).toEqual([followed.world.session.commandTimeoutMs]);
    await states.return();
  });

  test("yields a newer state as soon as a message reports a change", async () => {
    const states = await followed.begun();
    const next = watch(states.next());
    followed.subscriber?.push();
    await settle();
    expect([next.state, followed.reads.length]).toEqual(["pending", 1]);
    followed.state = 2;
    followed.subscriber?.push();
    await settle();
    expect(next.value).toEqual({ done: false, value: "state 2" });
    followed.state = 1;
    const other = watch(states.next());
    followed.subscriber?.push();
    await settle();
    expect(other.state).toBe("pending");
  });

  test("yields only the newest state to a slow reader", async () => {
    const states = await followed.begun();
    for (const state of [2, 3, 4]) {
      followed.state = state;
      followed.subscriber?.push();
      await settle();
    }
    expect((await states.next()).value).toBe("state 4");
    expect(watch(states.next()).state).toBe("pending");
  });

  test("reads again if messages arrive during a read, because that reply may be older", async () => {
    const states = await followed.begun();
    const answers = [new Answer<number>(), new Answer<number>()];
    followed.read = () => (answers[followed.reads.length - 1] as Answer<number>).promise;
    for (let i = 0; i < 3; i += 1) followed.subscriber?.push();
    const next = watch(states.next());
    await settle();
    expect(followed.reads).toHaveLength(1);
    answers[0]?.resolve(1);
    await settle();
    expect([followed.reads.length, next.state]).toEqual([2, "pending"]);
    answers[1]?.resolve(2);
    await settle();
    expect([followed.reads.length, next.value?.value]).toEqual([2, "state 2"]);
  });
});

describe("an observer reads again", () => {
  test("twice a minute while it is subscribed, in case a message was lost", async () => {
    await followed.begun();
    await followed.world.runtime.advance(60_000 + 2 * JITTER_MS);
    expect(followed.reads).toEqual([30_000 + JITTER_MS, 60_000 + 2 * JITTER_MS]);
    // An iterator that waits for the next state keeps the process alive.
    expect(followed.world.runtime.running(true)).toBe(1);
  });

  test("when the state is due to change, if that is sooner", async () => {
    followed.changesInMs = 4_000;
    await followed.begun();
    followed.changesInMs = 100_000;
    await followed.world.runtime.advance(40_000);
    expect(followed.reads).toEqual([4_000 + JITTER_MS, 34_000 + 2 * JITTER_MS]);
  });

  test("30 s after its last read, even if a message caused that read", async () => {
    await followed.begun();
    await followed.world.runtime.advance(20_000);
    followed.subscriber?.push();
    await followed.world.runtime.advance(31_000);
    expect(followed.reads).toEqual([20_000, 50_000 + JITTER_MS]);
  });

  test("immediately after a reconnect", async () => {
    const states = await followed.begun();
    const next = watch(states.next());
    followed.state = 2;
    followed.world.store.reconnect("inbox");
    await settle();
    expect(next.value?.value).toBe("state 2");
  });

  test("as soon as it is subscribed, because it may have missed a change", async () => {
    const subscribed = new Answer<void>();
    followed.world.store.subscribe = () => subscribed.promise;
    await followed.begun();
    expect(followed.subscriber).toBeUndefined();
    subscribed.resolve();
    await settle();
    expect(followed.reads).toHaveLength(1);
    await followed.world.runtime.advance(29_000);
    expect(followed.reads).toHaveLength(1);
  });

  test("every second if it cannot subscribe, without trying to subscribe again", async () => {
    let tries = 0;
    followed.world.store.subscribe = () => {
      tries += 1;
      return ScriptedStore.unsupported();
    };
    await followed.begun();
    const before = tries;
    await followed.world.runtime.advance(3_100);
    expect(followed.reads).toEqual([1_000, 2_000, 3_000].map((ms, i) => ms + (i + 1) * JITTER_MS));
    expect(tries).toBe(before);
  });

  test("every second until it can subscribe, and retries the subscription", async () => {
    followed.world.store.subscribe = () => Promise.reject(lost());
    await followed.begun();
    await followed.world.runtime.advance(2_100);
    expect(followed.reads).toHaveLength(2);
    followed.world.store.subscribe = () => Promise.resolve();
    await followed.world.runtime.advance(1_000);
    expect(followed.subscriber?.isOpen).toBe(true);
    followed.reads = [];
    await followed.world.runtime.advance(25_000);
    expect(followed.reads).toEqual([]);
  });

  test("a second after a transient failure, without an error for its reader", async () => {
    const states = await followed.begun();
    const next = watch(states.next());
    followed.read = () => Promise.reject(lost());
    followed.subscriber?.push();
    await followed.world.runtime.advance(2_500);
    expect([followed.reads, next.state]).toEqual([[0, 1_000 + JITTER_MS, 2_000 + 2 * JITTER_MS], "pending"]);
    followed.read = async () => 2;
    await followed.world.runtime.advance(1_000);
    expect(next.value?.value).toBe("state 2");
  });
});
