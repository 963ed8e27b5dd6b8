/** A payment that is made once, however often it is requested: by a refresh, after a crash, or by two services. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import process from "node:process";
import { inspectOnce, OnceMismatchError, once, resolveOnce } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

const order = { id: randomUUID(), total: 4_200 };
const charges: { order: string; total: number }[] = [];
const cardService = {
  async charge({ order, total }: { order: string; total: number; idempotencyKey: string; signal: AbortSignal }) {
    charges.push({ order, total });
    return { receipt: `r-${charges.length}` };
  },
};

async function pay(order: { id: string; total: number }) {
  return await once(
    holdfast,
    `charge:${order.id}`,
    (lease) =>
      cardService.charge({
        order: order.id,
        total: order.total,
        idempotencyKey: order.id, // the provider's own idempotency closes the last gap
        signal: lease.signal, // aborts before another caller may start
      }),
    {
      fingerprint: order, // the same key with other data is refused
      leaseMs: 15_000, // a crashed process is replaced after that; a slow one is renewed
      keepMs: 86_400_000, // for a day all callers get the first result
    },
  );
}

const [first, again] = await Promise.all([pay(order), pay(order)]);
assert.deepEqual(first.value, again.value);
assert.equal(charges.length, 1);
assert.equal([first, again].filter(({ replayed }) => replayed).length, 1);

await assert.rejects(pay({ ...order, total: 1 }), OnceMismatchError);

// If a process crashes, the next caller takes over and learns how far it got.
const stepwise = await once(holdfast, `import:${order.id}`, async (lease) => {
  const done = (lease.saved as number | undefined) ?? 0;
  for (let page = done; page < 3; page += 1) {
    lease.assertHeld();
    await lease.save(page + 1);
  }
  return { pages: 3, attempt: lease.attempt };
});
assert.deepEqual(stepwise.value, { pages: 3, attempt: 1 });

// After a timeout it is unknown whether the transfer was made: block it until a person has checked.
const transfer = `transfer:${order.id}`;
await assert.rejects(
  once(holdfast, transfer, () => Promise.reject(new Error("no answer from the bank")), {
    after: (outcome) => (outcome.ok ? "keep" : "block"),
  }),
);
assert.equal((await inspectOnce(holdfast, transfer))?.state, "blocked");
await resolveOnce(holdfast, transfer, { value: { booked: true } });
assert.deepEqual((await once(holdfast, transfer, () => ({ booked: false }))).value, { booked: true });

await holdfast.close();
redis.disconnect();
