/**
 * The local queue is looked up with a string of three parts. No choice of parts may produce the string of another lock.
 */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { AcquireTimeoutError, createHoldfast } from "../../src/index.js";
import { LONG_MS, SHORT_MS, SOON_MS, sleep, until } from "../../src/testing/delays.js";

test("two locks whose labels and keys concatenate to the same string have separate local queues", async () => {
  await using holdfast = createHoldfast({ store: embedded() });
  const one = holdfast.mutex("one", { key: "b c" });
  const other = holdfast.mutex("other", { key: "c" });
  const held = await one.acquire();
  const waiting = one.acquire({ label: "a", waitMs: 300 }).catch((error: unknown) => error);
  const lease = await other.acquire({ label: "a b", waitMs: 1_000 });
  expect((await other.inspect()).holders).toMatchObject([{ owner: lease.owner }]);
  await lease.release();
  await held.release();
  await waiting;
});

test("a grant of one lock is not given to a caller that waits for another lock", async () => {
  const keyspace = new Keyspace();
  await using here = createHoldfast({ store: embedded({ keyspace }) });
  await using elsewhere = createHoldfast({ store: embedded({ keyspace }) });
  await elsewhere.mutex("other", { key: "c" }).acquire();
  const one = { name: "one", options: { key: "b c" } };
  const blocking = await elsewhere.mutex(one.name, one.options).acquire();
  const first = here.mutex(one.name, one.options).acquire({ label: "a", waitMs: LONG_MS });
  await until(async () => (await here.mutex(one.name, one.options).inspect()).waiterCount === 1, "the first to queue");
  const second = here.mutex("other", { key: "c" }).acquire({ label: "a b", waitMs: SOON_MS / 2 });
  const end = second.catch((error: unknown) => error);
  await sleep(SHORT_MS);
  await blocking.release();
  await (await first).release();
  expect(await end).toBeInstanceOf(AcquireTimeoutError);
});
