/**
 * Several processes call a service that can only do a limited amount of work at a time: a small request costs one unit,
 * an export four. A semaphore keeps all callers together within the limit, and small requests do not starve exports.
 *
 *     npm run build && node examples/dist/bounded-downstream/bounded-downstream.js
 *
 * It runs in this process, or on the server that REDIS_URL names.
 */
import { strict as assert } from "node:assert";
import { setTimeout as pause } from "node:timers/promises";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "holdfast";
import { Redis } from "ioredis";

const UNITS = 6;
const COST = { request: 1, export: 4 } as const;
type Job = keyof typeof COST;

/** Stands for the service. It counts a call as refused if the calls in progress exceed its limit. */
const downstream = {
  busy: 0,
  most: 0,
  refused: 0,
  async call(job: Job, signal?: AbortSignal): Promise<void> {
    if (this.busy + COST[job] > UNITS) this.refused += 1;
    this.busy += COST[job];
    this.most = Math.max(this.most, this.busy);
    try {
      await pause(1, undefined, { signal });
    } finally {
      this.busy -= COST[job];
    }
  },
};

async function bounded(holdfast: Holdfast, job: Job): Promise<void> {
  const units = holdfast.semaphore("warehouse-api", { permits: UNITS });
  await units.run(({ signal }) => downstream.call(job, signal), { permits: COST[job], waitMs: 60_000, label: job });
}

const keyspace = new Keyspace();
const clients: Redis[] = [];
function connect(): HoldfastOptions {
  if (process.env.REDIS_URL === undefined) return { store: embedded({ keyspace }) };
  const redis = new Redis(process.env.REDIS_URL);
  clients.push(redis);
  return { redis };
}

const jobs: Job[] = Array.from({ length: 120 }, (_, i) => (i % 10 === 5 ? "export" : "request"));

await Promise.all(jobs.map((job) => downstream.call(job)));
const refusedWithout = downstream.refused;
assert.ok(refusedWithout > 0, "without a bound it is too much");

Object.assign(downstream, { most: 0, refused: 0 });
// Each client stands for a process.
const processes = [createHoldfast(connect()), createHoldfast(connect())] as const;
await Promise.all(jobs.map((job, i) => bounded(processes[i % 2] as Holdfast, job)));
assert.equal(downstream.refused, 0);
assert.ok(downstream.most <= UNITS);
process.stdout.write(
  `downstream: ${jobs.length} jobs, ${refusedWithout} refused without the semaphore, ${downstream.refused} with it\n`,
);

await Promise.all(processes.map((holdfast) => holdfast.close()));
for (const client of clients) client.disconnect();
