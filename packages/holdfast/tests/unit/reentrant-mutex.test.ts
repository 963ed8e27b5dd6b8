/** The cost of a reentrant mutex: no round trip to re-enter, and no async context unless it is used. */
import { createRequire, syncBuiltinESMExports } from "node:module";
import { Keyspace } from "@holdfast/embedded";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { LeaseLostError } from "../../src/core/errors.js";
import { channels } from "../../src/core/events.js";
import type { createHoldfast as CreateHoldfast, Holdfast } from "../../src/index.js";
import { WatchedStore } from "./watched-store.js";

// Runs before the library is imported, so that every storage is counted.
const asyncHooks = createRequire(import.meta.url)("node:async_hooks") as { AsyncLocalStorage: new () => object };
const { AsyncLocalStorage } = asyncHooks;
let storages = 0;
let createHoldfast: typeof CreateHoldfast;
let store: WatchedStore;
let holdfast: Holdfast;

/** Replaces the class. It is a getter without a setter since Node 22, so an assignment would throw. */
function replaceStorage(value: new () => object): void {
  Object.defineProperty(asyncHooks, "AsyncLocalStorage", { value, configurable: true, writable: true });
  syncBuiltinESMExports();
}

beforeAll(async () => {
  replaceStorage(
    class extends AsyncLocalStorage {
      constructor() {
        super();
        storages += 1;
      }
    },
  );
  ({ createHoldfast } = await import("../../src/index.js"));
});
afterAll(() => replaceStorage(AsyncLocalStorage));
beforeEach(() => {
  storages = 0;
  store = new WatchedStore(new Keyspace());
  holdfast = createHoldfast({ store });
});
afterEach(() => holdfast.close());

test("only a reentrant mutex creates an async context, once, at its first run", async () => {
  await holdfast.mutex("plain").run(() => holdfast.mutex("other").run(() => {}));
  const lease = await holdfast.reentrantMutex("explicit").acquire();
  await (await holdfast.reentrantMutex("explicit").acquire({ within: lease })).release();
  await lease.release();
  expect(holdfast.reentrantMutex("explicit").holdCount).toBe(0);
  expect(storages).toBe(0);
  await holdfast.reentrantMutex("a").run(() => holdfast.reentrantMutex("b").run(() => {}));
  await holdfast.reentrantMutex("a").run(() => {});
  expect(storages).toBe(1);
});

test("re-entering sends nothing unless it extends the lease", async () => {
  const mutex = holdfast.reentrantMutex("a");
  await mutex.run(async (outer) => {
    expect(store.taken()).toEqual(["mutex/acquire"]);
    await mutex.run(() => mutex.run(() => {}));
    await (await mutex.tryAcquire())?.release();
    await (await mutex.acquire({ within: outer, leaseMs: 1_000, waitMs: 0, label: "again" })).release();
    expect(store.taken()).toEqual([]);
    await (await mutex.acquire({ leaseMs: 60_000 })).release();
    expect(store.taken()).toEqual(["mutex/extend"]);
  });
  expect(store.taken()).toEqual(["mutex/release"]);
});

test("an acquire outside run shares its hold with neither later nor concurrent calls", async () => {
  const mutex = holdfast.reentrantMutex("a");
  const sibling = async (): Promise<boolean> => {
    const lease = await mutex.tryAcquire();
    await new Promise(setImmediate);
    await lease?.release();
    return lease !== null;
  };
  expect((await Promise.all([sibling(), sibling()])).filter(Boolean)).toHaveLength(1);
  const lease = await mutex.acquire();
  expect(mutex.holdCount).toBe(0);
  expect(await mutex.tryAcquire()).toBeNull();
  await lease.release();
});

test("an extension with an unknown outcome rejects and leaves the hold unchanged", async () => {
  const mutex = holdfast.reentrantMutex("a");
  const outer = await mutex.acquire();
  store.fateOf = ({ name }) => (name === "mutex/extend" ? "reply lost" : "answered");
  await expect(mutex.acquire({ within: outer, leaseMs: 60_000 })).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
  expect(outer.holdCount).toBe(1);
  expect(await outer.release()).toBe("released");
});

test("re-entering after the outer lease was exported gets a new hold", async () => {
  const mutex = holdfast.reentrantMutex("a");
  await mutex.run(async (outer) => {
    const adopted = await holdfast.adopt(outer.export());
    expect(mutex.holdCount).toBe(0);
    await adopted.release();
    const own = await mutex.acquire();
    expect(own.token).toBeGreaterThan(outer.token);
    await own.release();
  });
});

test("a nested lease does not report a release after the hold was lost", async () => {
  const mutex = holdfast.reentrantMutex("a");
  const outer = await mutex.acquire();
  const inner = await mutex.acquire({ within: outer });
  await mutex.forceRelease({ owner: outer.owner });
  await expect(outer.extend(60_000)).rejects.toThrow(LeaseLostError);
  expect(outer.validForMs()).toBe(0);
  await expect(inner.release()).rejects.toThrow(LeaseLostError);
});

test("every nested lease publishes its own grant and release", async () => {
  const seen: string[] = [];
  const hear = (message: unknown, channel: string | symbol): void => {
    const { kind, lockName } = message as { kind: string; lockName: string };
    seen.push(`${String(channel)} ${kind} ${lockName}`);
  };
  channels.grant.subscribe(hear);
  channels.release.subscribe(hear);
  const mutex = holdfast.reentrantMutex("a");
  await mutex.run(() => mutex.run(() => {}));
  channels.grant.unsubscribe(hear);
  channels.release.unsubscribe(hear);
  const [grant, release] = ["holdfast:grant reentrant-mutex a", "holdfast:release reentrant-mutex a"];
  expect(seen).toEqual([grant, grant, release, release]);
});
