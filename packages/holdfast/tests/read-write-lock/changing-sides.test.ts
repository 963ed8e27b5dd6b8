/** Upgrades and downgrades whose reply is lost. The lease never claims more than the server granted. */
import { type EmbeddedStore, embedded, Keyspace } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHoldfast, type Holdfast, StoreError } from "../../src/index.js";

let store: EmbeddedStore;
let holdfast: Holdfast;
let others: Holdfast;

beforeEach(async () => {
  const keyspace = new Keyspace();
  store = embedded({ keyspace });
  holdfast = createHoldfast({ store });
  others = createHoldfast({ store: embedded({ keyspace }) });
  // Load the scripts first. An unknown script is sent twice, and the first request does nothing.
  await holdfast.readWriteLock("warm").write.run((lease) => lease.downgrade());
});
afterEach(async () => {
  await Promise.all([holdfast.close(), others.close()]);
});

/** The server runs the request, but its reply is lost. */
async function losingTheAnswer(change: Promise<unknown>): Promise<void> {
  // Changes of one lease run one after the other, so the request is sent only after a few microtasks.
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  store.dropConnection("commands");
  await expect(change).rejects.toThrow(StoreError);
}

test("after a downgrade without a reply, the lease counts as read and a retry settles it", async () => {
  const lease = await holdfast.readWriteLock("a").write.acquire();
  await losingTheAnswer(lease.downgrade());
  expect(lease.mode).toBe("read");
  lease.assertHeld();
  await lease.downgrade();
  const reader = await others.readWriteLock("a").read.acquire({ waitMs: 0 });
  expect(await lease.tryUpgrade()).toBeNull();
  await reader.release();
  expect(await lease.release()).toBe("released");
});

test("after an upgrade without a reply, a retry returns the token that the server issued", async () => {
  const lease = await holdfast.readWriteLock("a").read.acquire();
  const { token } = lease;
  await losingTheAnswer(lease.tryUpgrade());
  expect([lease.mode, lease.token]).toEqual(["read", token]);
  const { holders } = await others.readWriteLock("a").read.inspect();
  expect(holders).toMatchObject([{ mode: "write" }]);
  expect(await lease.tryUpgrade()).toBe(lease);
  expect(lease.token).toBeGreaterThan(token);
  expect(lease.token).toBe(holders[0]?.token);
  expect(await lease.release()).toBe("released");
});

test("after an upgrade without a reply, a downgrade undoes it and a release frees the lock", async () => {
  const [first, second] = [holdfast.readWriteLock("a"), holdfast.readWriteLock("b")];
  const [a, b] = [await first.read.acquire(), await second.read.acquire()];
  await losingTheAnswer(a.tryUpgrade());
  await a.downgrade();
  await (await others.readWriteLock("a").read.acquire({ waitMs: 0 })).release();
  await losingTheAnswer(b.tryUpgrade());
  expect(await b.release()).toBe("released");
  await (await others.readWriteLock("b").write.acquire({ waitMs: 0 })).release();
});
