/** Waits on a client that cannot receive messages. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHoldfast, type Holdfast, type Leader, type Store, UnsupportedError } from "../../src/index.js";
import { LONG_MS, until } from "../../src/testing/delays.js";

let deaf: Holdfast;
let other: Holdfast;

/** A store without an inbox, like a pool without a factory. */
function deafStore(keyspace: Keyspace): Store {
  const store = embedded({ keyspace });
  return {
    kind: store.kind,
    run: (...call) => store.run(...call),
    inbox: (channel) => Promise.reject(new UnsupportedError(channel, "This client cannot listen.")),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
}

beforeEach(() => {
  const keyspace = new Keyspace();
  deaf = createHoldfast({ store: deafStore(keyspace) });
  other = createHoldfast({ store: embedded({ keyspace }) });
});
afterEach(async () => {
  await Promise.all([deaf.close(), other.close()]);
});

test("a condition wait is rejected, and the mutex stays held", async () => {
  const mutex = deaf.mutex("m");
  const lease = await mutex.acquire();
  await expect(mutex.condition("c").wait(lease)).rejects.toThrow(UnsupportedError);
  lease.assertHeld();
  expect(await mutex.condition("c").signal(lease)).toBe(0);
  expect(await lease.release()).toBe("released");
});

test("a latch is polled until it opens", async () => {
  await other.countDownLatch("l").trySetCount(1);
  const waiting = deaf.countDownLatch("l").await({ waitMs: LONG_MS });
  await other.countDownLatch("l").countDown();
  await waiting;
});

test("a party arrives and polls until all parties have arrived", async () => {
  const waiting = deaf.barrier("b", { parties: 2 }).arrive({ waitMs: LONG_MS });
  const barrier = other.barrier("b", { parties: 2 });
  await until(async () => (await barrier.inspect()).arrived.length === 1, "the deaf party");
  expect((await barrier.arrive({ waitMs: 0 })).index).toBe(1);
  expect((await waiting).index).toBe(0);
  await expect(deaf.barrier("b", { parties: 2 }).arrive({ waitMs: 0 })).rejects.toThrow(/has not arrived/);
});

test("an observer polls for new states", async () => {
  const leadership = await other.election("e").campaign("first");
  const seen: (Leader | null)[] = [];
  const controller = new AbortController();
  const following = (async () => {
    for await (const leader of deaf.election("e").observe({ signal: controller.signal })) seen.push(leader);
  })().catch(() => {});
  await until(() => seen.length === 1, "the first state");
  await leadership.proclaim("second");
  await until(() => seen.at(-1)?.value === "second", "the second state");
  controller.abort();
  await following;
});
