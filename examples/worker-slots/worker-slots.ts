/**
 * Workers that need a small number of their own, such as the one that goes into the ids they make. The number comes
 * with a permit: no two living workers have the same, and that of a worker that died is given out again.
 *
 *     npm run build && node examples/dist/worker-slots/worker-slots.js
 *
 * It runs in this process, or on the server that REDIS_URL names.
 */
import { strict as assert } from "node:assert";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "holdfast";
import { Redis } from "ioredis";

const WORKERS = 4;
const IDS = 500;

/** A worker that makes ids nobody else makes: its number, and a count that goes on where its predecessor stopped. */
const counts = new Map<number, number>();
function makeIds(worker: number): string[] {
  const first = counts.get(worker) ?? 0;
  counts.set(worker, first + IDS);
  return Array.from({ length: IDS }, (_, i) => `${worker}-${first + i}`);
}

const keyspace = new Keyspace();
const clients: Redis[] = [];
function connect(): HoldfastOptions {
  if (process.env.REDIS_URL === undefined) return { store: embedded({ keyspace }) };
  const redis = new Redis(process.env.REDIS_URL);
  clients.push(redis);
  return { redis };
}

/** A process with one worker; it holds its number for as long as it lives. */
async function startWorker(
  options: { readonly isDoomed?: boolean } = {},
): Promise<{ holdfast: Holdfast; slot: number }> {
  const holdfast = createHoldfast(connect());
  // A process that dies renews nothing; that is all that others see of it.
  const dying = options.isDoomed === true ? { leaseMs: 200, renew: false } : {};
  const lease = await holdfast.semaphore("id-workers", { permits: WORKERS }).acquire(dying);
  const [slot] = lease.slots;
  assert.ok(slot !== undefined);
  return { holdfast, slot };
}

const workers = [await startWorker(), await startWorker({ isDoomed: true }), await startWorker(), await startWorker()];
const slots = workers.map(({ slot }) => slot);
assert.deepEqual(slots, [0, 1, 2, 3]);
const ids = slots.flatMap(makeIds);

// One more than there are numbers: it waits until the one that died has been found out, and succeeds it.
const successor = await startWorker();
assert.equal(successor.slot, 1);
ids.push(...makeIds(successor.slot));

assert.equal(new Set(ids).size, ids.length);
const { holders, used } = await successor.holdfast.semaphore("id-workers", { permits: WORKERS }).inspect();
assert.equal(used, WORKERS);
assert.deepEqual(new Set(holders.flatMap((holder) => holder.slots)), new Set([0, 1, 2, 3]));
process.stdout.write(`workers: ${ids.length} ids, all different; worker ${successor.slot} succeeds one that died\n`);

await Promise.all([...workers, successor].map(({ holdfast }) => holdfast.close()));
for (const client of clients) client.disconnect();
