/** Webhooks that come twice, late and out of order: applies one event at a time to each subscription, in order. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import process from "node:process";
import { keyed } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

interface Event {
  id: string;
  subscription: string;
  created: number;
  status: string;
}
const subscription = randomUUID();
const saved: string[] = [];
const database = {
  async setStatus(_subscription: string, status: string, { signal }: { fence: number; signal: AbortSignal }) {
    signal.throwIfAborted();
    if (status === "broken") throw new Error("the database does not answer");
    saved.push(status);
  },
};

const subscriptions = keyed(holdfast, "stripe");

async function receive(event: Event): Promise<number> {
  const result = await subscriptions.run(
    event.subscription,
    (lease) =>
      database.setStatus(event.subscription, event.status, {
        fence: lease.token, // the database refuses the write if a later event was already written
        signal: lease.signal, // aborts before another process may continue with this subscription
      }),
    {
      eventId: event.id, // delivered again: a duplicate
      sequence: event.created, // an older event than the last applied one is outdated
      waitersMax: 100, // with more, the sender must try again
      waitMs: 10_000,
      keepMs: 7 * 86_400_000, // longer than the sender retries
    },
  );
  // Duplicates and outdated events are done; only refused ones must be sent again.
  return result.outcome === "refused" ? 503 : 200;
}

const paid = { id: randomUUID(), subscription, created: 1_000, status: "paid" };
assert.deepEqual(await Promise.all([receive(paid), receive(paid)]), [200, 200]);
assert.equal(await receive({ id: randomUUID(), subscription, created: 999, status: "unpaid" }), 200);
assert.deepEqual(saved, ["paid"]);

// A failure is not recorded, so the next delivery is applied.
const failing = { id: randomUUID(), subscription, created: 1_001, status: "broken" };
await assert.rejects(receive(failing), /does not answer/);
assert.equal(await receive({ ...failing, status: "cancelled" }), 200);
assert.deepEqual(saved, ["paid", "cancelled"]);

await holdfast.close();
redis.disconnect();
