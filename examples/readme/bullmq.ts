/** Runs the jobs of a customer one at a time, from any queue. Waiting jobs do not occupy a worker. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import process from "node:process";
import { withLock } from "@holdfast/bullmq";
import { type ConnectionOptions, Queue, Worker } from "bullmq";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
const redis = new Redis(url);
// BullMQ requires a client whose commands wait without a limit, and uses the types of a different ioredis version.
const jobs = new Redis(url, { maxRetriesPerRequest: null });
const connection = jobs as unknown as ConnectionOptions;
const holdfast = createHoldfast({ redis });

const queueName = `invoices-${randomUUID()}`;
const queue = new Queue<{ customerId: string }>(queueName, { connection });
const bank = {
  bills: [] as { customer: string; token: number }[],
  atOnce: 0,
  async bill(customer: string, { signal, token }: { signal: AbortSignal; token: number }): Promise<number> {
    this.atOnce += 1;
    assert.equal(this.atOnce, 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    signal.throwIfAborted();
    this.atOnce -= 1;
    return this.bills.push({ customer, token });
  },
};

const worker = new Worker(
  queueName,
  withLock(
    holdfast,
    (job) => `customer:${job.data.customerId}`, // undefined: no lock
    async (job, _jobToken, signal, lease) =>
      await bank.bill(job.data.customerId, {
        signal, // aborts when the job is canceled or its lock is lost
        token: lease.token,
      }),
    { whenBusy: { delayMs: 20 } }, // about 5 s for longer jobs
  ),
  { connection, concurrency: 5 },
);

await queue.addBulk(Array.from({ length: 10 }, () => ({ name: "bill", data: { customerId: "ana" } })));
while (bank.bills.length < 10) await new Promise((resolve) => setTimeout(resolve, 5));
const tokens = bank.bills.map(({ token }) => token);
assert.deepEqual(
  tokens,
  tokens.toSorted((a, b) => a - b),
);

await worker.close(); // first: it ends its jobs
await holdfast.close();
await queue.close();
for (const client of [redis, jobs]) client.disconnect();
