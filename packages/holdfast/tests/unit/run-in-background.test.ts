/** `run` with `release: "background"` on a manual clock: what it awaits, where errors go, and what `close` awaits. */
import { beforeEach, describe, expect, test } from "vitest";
import { LeaseLostError, StoreError } from "../../src/core/errors.js";
import { channels, type ReleaseEvent } from "../../src/core/events.js";
import type { RunOptions } from "../../src/core/options.js";
import { settle } from "./manual-runtime.js";
import { Answer, lost, NOW_US, never, ScriptedLock, watch } from "./scripted-lock.js";

const BACKGROUND: RunOptions = { release: "background" };
const FAULT = new Error("the work failed");

let world: ScriptedLock;
let reply: Answer<"released" | "claimed">;
beforeEach(() => {
  world = new ScriptedLock();
  reply = new Answer();
  world.answers.release = () => reply.promise;
});

describe("after the work, run", () => {
  test("awaits the reply to the release unless told otherwise", async () => {
    for (const options of [undefined, {}, { release: undefined }, { release: "awaited" }] as const) {
      reply = new Answer();
      const running = watch(world.lock.run(() => "done", options));
      await settle();
      expect(running.state).toBe("pending");
      reply.resolve("released");
      await settle();
      expect(running.value).toBe("done");
    }
  });

  test("in the background resolves without the reply to the release, which it has sent", async () => {
    expect(await world.lock.run(() => "done", BACKGROUND)).toBe("done");
    expect(world.sentOf("release")).toHaveLength(1);
    expect(world.session.held()).toEqual([]);
  });

  test("in the background rejects with the error of the work without the reply to the release", async () => {
    await expect(world.lock.run(() => Promise.reject(FAULT), BACKGROUND)).rejects.toBe(FAULT);
    expect(world.sentOf("release")).toHaveLength(1);
  });

  test("in the background awaits the server's reply if the lease is over, and rejects if it was lost", async () => {
    const extended = new Answer<"claimed">();
    world.answers.extend = () => extended.promise;
    const work = (): Promise<void> => world.runtime.advance(40_000);
    const running = watch(world.lock.run(work, { ...BACKGROUND, renew: false }));
    await world.runtime.advance(40_000);
    await settle();
    expect(running.state).toBe("pending");
    extended.resolve("claimed");
    await settle();
    expect(running.error).toBeInstanceOf(LeaseLostError);
  });

  test("in the background never renews the lease again, whatever the outcome of the release", async () => {
    world.answers.release = () => never();
    world.answers.leave = () => Promise.reject(lost());
    await world.lock.run(() => world.runtime.advance(15_000), BACKGROUND);
    const renewals = world.sentOf("extend").length;
    await world.runtime.advance(200_000);
    expect(world.sentOf("extend")).toHaveLength(renewals);
    expect(world.runtime.running()).toBe(0);
  });

  test("in the background passes the lock to the next caller of this process without a request", async () => {
    world = new ScriptedLock({ takesTurns: true });
    const grant = new Answer<{ outcome: "granted"; token: number; nowUs: number }>();
    world.answers.acquire = () => grant.promise;
    const order: string[] = [];
    const runs = ["first", "second"].map((name) => world.lock.run(() => order.push(name), BACKGROUND));
    await world.runtime.advance(5);
    grant.resolve({ outcome: "granted", token: 1_000, nowUs: NOW_US });
    await Promise.all(runs);
    expect(order).toEqual(["first", "second"]);
    expect([world.sentOf("acquire").length, world.sentOf("release").length]).toEqual([1, 1]);
  });
});

describe("an error of a release that run does not reject with", () => {
  /** Runs work whose release fails, and returns what `onReleaseError` was called with. */
  async function told(options: RunOptions, work: () => unknown = () => {}): Promise<unknown[]> {
    const errors: unknown[] = [];
    const running = watch(world.lock.run(work, { ...options, onReleaseError: (error) => errors.push(error) }));
    await world.runtime.advance(10_000);
    expect(running.state).not.toBe("pending");
    return errors;
  }

  test("goes to onReleaseError and to the release event", async () => {
    const events: ReleaseEvent[] = [];
    const onEvent = (event: unknown): unknown => events.push(event as ReleaseEvent);
    channels.release.subscribe(onEvent);
    try {
      world.answers.release = () => Promise.reject(lost());
      expect(await told(BACKGROUND)).toEqual([expect.any(StoreError)]);
      world.answers.release = async () => "claimed";
      expect(await told(BACKGROUND)).toMatchObject([{ code: "ERR_LOCK_LEASE_LOST", reason: "server-lost" }]);
      world.answers.release = async () => "released";
      expect(await told(BACKGROUND)).toEqual([]);
    } finally {
      channels.release.unsubscribe(onEvent);
    }
    expect(events.map(({ outcome }) => outcome)).toEqual(["unknown", "lost", "released"]);
  });

  test("also goes to onReleaseError when the release is awaited", async () => {
    world.answers.release = () => Promise.reject(lost());
    expect(await told({})).toEqual([expect.any(StoreError)]);
    expect(await told({}, () => Promise.reject(FAULT))).toEqual([expect.any(StoreError)]);
  });

  test("is ignored without onReleaseError, and so is what onReleaseError throws", async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown): unknown => unhandled.push(error);
    process.on("unhandledRejection", onUnhandled);
    try {
      world.answers.release = () => Promise.reject(lost());
      const throws = (): void => {
        throw new Error("thrown by onReleaseError");
      };
      const rejects = async (): Promise<void> => throws();
      for (const onReleaseError of [undefined, throws, rejects]) {
        for (const release of ["awaited", "background"] as const) {
          const running = watch(world.lock.run(() => "done", { release, onReleaseError }));
          await world.runtime.advance(10_000);
          expect(running.value).toBe("done");
        }
      }
      // Node reports unhandled rejections when the microtasks of a turn are done.
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      process.off("unhandledRejection", onUnhandled);
    }
    expect(unhandled).toEqual([]);
  });
});

describe("close", () => {
  test.each([undefined, 60_000])("with graceMs %s awaits releases in the background", async (graceMs) => {
    await world.lock.run(() => {}, BACKGROUND);
    const closing = watch(world.session.close(graceMs));
    await settle();
    expect([closing.state, world.store.wasClosed]).toEqual(["pending", false]);
    reply.resolve("released");
    await settle();
    expect([closing.state, world.store.wasClosed]).toEqual(["fulfilled", true]);
    expect(world.sentOf("leave")).toEqual([]);
  });

  test("ends in bounded time if the server never replies to a release in the background", async () => {
    world.answers.release = () => Promise.reject(lost());
    world.answers.leave = () => Promise.reject(lost());
    const errors: unknown[] = [];
    await world.lock.run(() => {}, { ...BACKGROUND, onReleaseError: (error) => errors.push(error) });
    const closing = watch(world.session.close());
    await world.runtime.advance(10_000);
    expect(closing.state).toBe("fulfilled");
    expect(errors).toEqual([expect.any(StoreError)]);
    expect(world.runtime.running()).toBe(0);
  });
});
