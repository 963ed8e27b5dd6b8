/** Changes of side whose answer is lost: the lease never claims more than the server grants. */
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
  // A script that the server does not know yet is sent twice, and the first time does nothing.
  await holdfast.readWriteLock("warm").write.run((lease) => lease.downgrade());
});
afterEach(async () => {
  await Promise.all([holdfast.close(), others.close()]);
});

/** The request arrives, and its answer does not. */
async function losingTheAnswer(change: Promise<unknown>): Promise<void> {
  // Until the request is on its way: changes of one lease go in turns.
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  store.dropConnection("commands");
  await expect(change).rejects.toThrow(StoreError);
}

test("after a downgrade without an answer the lease counts as a reader's, and the next one settles it", async () => {
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

test("after an upgrade without an answer the same call again gives the token that was issued", async () => {
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

test("after an upgrade without an answer a downgrade undoes it, and a release gives everything back", async () => {
  const [first, second] = [holdfast.readWriteLock("a"), holdfast.readWriteLock("b")];
  const [a, b] = [await first.read.acquire(), await second.read.acquire()];
  await losingTheAnswer(a.tryUpgrade());
  await a.downgrade();
  await (await others.readWriteLock("a").read.acquire({ waitMs: 0 })).release();
  await losingTheAnswer(b.tryUpgrade());
  expect(await b.release()).toBe("released");
  await (await others.readWriteLock("b").write.acquire({ waitMs: 0 })).release();
});
