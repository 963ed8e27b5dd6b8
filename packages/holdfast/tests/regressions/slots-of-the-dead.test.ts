/** Permit numbers reserved for a crashed waiter go to the next waiter. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/index.js";
import { until } from "../../src/testing/delays.js";

test("a waiter granted after a crashed waiter gets the smallest free permit numbers", async () => {
  const keyspace = new Keyspace();
  const gone = embedded({ keyspace });
  const [holder, leaver, next] = [embedded({ keyspace }), gone, embedded({ keyspace })].map((store) =>
    createHoldfast({ store, commandTimeoutMs: 100 }),
  );
  if (holder === undefined || leaver === undefined || next === undefined) throw new Error("there are three");
  const permitsOf = (holdfast: typeof holder) => holdfast.semaphore("s", { permits: 4 });
  const waiters = async (count: number): Promise<void> =>
    until(async () => (await permitsOf(holder).inspect()).waiterCount === count, `${count} to wait`);

  const one = await permitsOf(holder).acquire();
  const three = await permitsOf(holder).acquire({ permits: 3 });
  const lost = permitsOf(leaver)
    .acquire({ permits: 2 })
    .catch(() => undefined);
  await waiters(1);
  const waiting = permitsOf(next).acquire({ permits: 2 });
  await waiters(2);
  // Like a killed process: the client receives no messages and sends none.
  await gone.close();
  await three.release();
  expect((await waiting).slots).toEqual([1, 2]);
  await one.release();
  await (await waiting).release();
  await Promise.all([holder.close(), next.close(), leaver.close().catch(() => {})]);
  await lost;
});
