/** How an observation ends. Nothing of it may remain afterward. */
import { getEventListeners } from "node:events";
import { beforeEach, describe, expect, test } from "vitest";
import { ClosedError, StoreError } from "../../src/core/errors.js";
import { Followed } from "./followed.js";
import { settle } from "./manual-runtime.js";
import { Answer, watch } from "./scripted-lock.js";

const DONE = { done: true, value: undefined };
const NOTHING = { subscribers: 0, claims: 0, timers: 0 };

let followed: Followed;
beforeEach(() => {
  followed = new Followed();
});

test("a running observation has a subscriber, a claim and a timer", async () => {
  await followed.begun();
  expect(followed.left).toEqual({ subscribers: 1, claims: 1, timers: 1 });
});

describe("stopping an observation", () => {
  test.each(["return", "throw"] as const)(
    "with %s() ends the pending next() and leaves nothing running",
    async (how) => {
      const states = await followed.begun();
      const waiting = watch(states.next());
      const enough = new Error("enough");
      const ending = watch(how === "return" ? states.return() : states.throw(enough));
      await settle();
      expect(waiting.value).toEqual(DONE);
      expect([ending.value, ending.error]).toEqual(how === "return" ? [DONE, undefined] : [undefined, enough]);
      expect(await states.next()).toEqual(DONE);
      expect(followed.left).toEqual(NOTHING);
      followed.subscriber?.push();
      followed.world.store.reconnect("inbox");
      await followed.world.runtime.advance(60_000);
      expect(followed.reads).toEqual([]);
    },
  );

  test("discards a reply in flight and sends no more requests", async () => {
    const states = await followed.begun();
    const answer = new Answer<number>();
    followed.read = () => answer.promise;
    followed.subscriber?.push();
    followed.subscriber?.push();
    const waiting = watch(states.next());
    await states.return();
    answer.resolve(2);
    await followed.world.runtime.advance(60_000);
    expect(waiting.value).toEqual(DONE);
    expect(followed.reads).toHaveLength(1);
    expect(followed.left).toEqual(NOTHING);
  });

  test("before its subscription is confirmed closes the subscription later", async () => {
    const subscribed = new Answer<void>();
    followed.world.store.subscribe = () => subscribed.promise;
    const states = await followed.begun();
    await states.return();
    expect(followed.subscriber).toBeUndefined();
    subscribed.resolve();
    await settle();
    expect(followed.subscriber?.isOpen).toBe(false);
    expect(followed.reads).toEqual([]);
  });

  test("between two states drops the state that was not read", async () => {
    const states = await followed.begun();
    followed.state = 2;
    followed.subscriber?.push();
    await settle();
    await states.return();
    expect(await states.next()).toEqual(DONE);
    expect(followed.left).toEqual(NOTHING);
  });
});

describe("a signal", () => {
  test("that aborts rejects the pending next() with its reason, once", async () => {
    const controller = new AbortController();
    const states = await followed.begun({ signal: controller.signal });
    const waiting = watch(states.next());
    controller.abort("enough");
    await settle();
    expect([waiting.state, waiting.error]).toEqual(["rejected", "enough"]);
    expect(await states.next()).toEqual(DONE);
    expect(followed.left).toEqual(NOTHING);
  });

  test("that aborts between two states rejects the next call even if a new state is ready", async () => {
    const controller = new AbortController();
    const states = await followed.begun({ signal: controller.signal });
    followed.state = 2;
    followed.subscriber?.push();
    await settle();
    controller.abort("enough");
    expect(followed.left).toEqual(NOTHING);
    await expect(states.next()).rejects.toBe("enough");
    expect(await states.next()).toEqual(DONE);
  });

  test("that has already aborted prevents the observation from starting", async () => {
    const states = followed.observe({ signal: AbortSignal.abort("enough") });
    await expect(states.next()).rejects.toBe("enough");
    expect([followed.reads, followed.left]).toEqual([[], NOTHING]);
  });

  test("has no listener left after the observation ends", async () => {
    const { signal } = new AbortController();
    const states = await followed.begun({ signal });
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    await states.return();
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("a failure", () => {
  const refusal = new StoreError("followed", { mayHaveRun: false, transient: false, cause: new Error("WRONGTYPE") });

  test.each([
    ["that the server reports as permanent", refusal],
    ["of another kind", new TypeError("not a number")],
  ])("%s rejects the reader and ends the observation", async (_name, failure) => {
    const states = await followed.begun();
    const waiting = watch(states.next());
    followed.read = () => Promise.reject(failure);
    followed.subscriber?.push();
    await settle();
    expect(waiting.error).toBe(failure);
    expect(await states.next()).toEqual(DONE);
    expect(followed.left).toEqual(NOTHING);
    await followed.world.runtime.advance(60_000);
    expect(followed.reads).toHaveLength(1);
  });
});

describe("closing the Holdfast", () => {
  // A loop over the states usually runs unawaited. If it threw, an uncaught error would end the process during its shutdown.
  test("ends the observation without an error and does not wait for the reader", async () => {
    const states = await followed.begun();
    const waiting = watch(states.next());
    const closing = watch(followed.world.session.close());
    await settle();
    expect(waiting.value).toEqual(DONE);
    expect(closing.value).toEqual({ released: [], unsettled: [] });
    expect(followed.left).toEqual(NOTHING);
  });

  test("with a grace ends the observation immediately, even while a lease is held", async () => {
    const states = await followed.begun();
    const waiting = watch(states.next());
    await followed.world.lock.acquire();
    const closing = watch(followed.world.session.close(60_000));
    await settle();
    expect([waiting.state, closing.state]).toEqual(["fulfilled", "pending"]);
    expect(followed.left).toMatchObject({ subscribers: 0, timers: 0 });
  });

  test("refuses new observations", async () => {
    await followed.world.session.close();
    await expect(followed.observe().next()).rejects.toThrow(ClosedError);
    expect(followed.reads).toEqual([]);
  });
});

describe("invalid options", () => {
  test.each([
    [null, "options must be an object; got null"],
    ["now", 'options must be an object; got "now"'],
    [{ timeoutMs: 1 }, 'there is no option "timeoutMs"; the options are signal'],
    [new AbortController().signal, "options must be an object such as { signal }; got an AbortSignal"],
    [{ signal: {} }, "signal must be an AbortSignal"],
    [{ signal: null }, "signal must be an AbortSignal; got null"],
  ])("%o are rejected without a request", async (options, says) => {
    const reading = followed.observe(options as never).next();
    await expect(reading).rejects.toThrow(TypeError);
    await expect(reading).rejects.toThrow(says);
    expect([followed.reads, followed.left]).toEqual([[], NOTHING]);
  });
});
