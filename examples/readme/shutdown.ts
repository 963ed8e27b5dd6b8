/** A service that is asked to stop: work stops first, and then its locks are released to others. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { ClosedError, closeOnSignal, createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
const name = `invoices:${randomUUID()}`;
const logged: string[] = [];

const stopListening = closeOnSignal(holdfast, ["SIGTERM", "SIGINT"], {
  graceMs: 25_000, // less than the platform's kill timeout: 30 s in Kubernetes
  onClosed: ({ released, unsettled }) => logged.push(`${released.length} released, ${unsettled.length} left to expire`),
});

async function work(pages: number) {
  return await holdfast.mutex(name).run(async ({ signal }) => {
    let done = 0;
    for (; done < pages && !signal.aborted; done += 1) await sleep(5, undefined, { ref: true });
    return done; // stops where the next run can continue, and keeps the lock until then
  });
}

const working = work(1_000_000);
while (holdfast.held().length === 0) await sleep(1);
const [mine] = holdfast.held(); // what this process holds: for a health page, or a log line
assert.equal(mine?.name, name);

// In a service, `kill <pid>` causes this. Here there is no signal, so that the example continues.
const closing = holdfast.close({ graceMs: 25_000 });
await assert.rejects(holdfast.mutex("another").acquire(), ClosedError);
assert.ok((await working) < 1_000_000);
const { released, unsettled } = await closing;
assert.deepEqual([released.map((lease) => lease.name), unsettled], [[name], []]);

stopListening();
const next = createHoldfast({ redis });
assert.ok(await next.mutex(name).tryAcquire(), "the next one has it at once, and not after the lease");
await next.close();
redis.disconnect();
