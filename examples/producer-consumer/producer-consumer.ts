/**
 * A buffer with room for four items, between producers and consumers in several processes. If the buffer is full or
 * empty, a process waits on a condition of the mutex until another process signals it, instead of polling.
 *
 *     npm run build && node examples/dist/producer-consumer/producer-consumer.js
 *
 * It runs in this process, or on the server that REDIS_URL names.
 */
import { strict as assert } from "node:assert";
import { setImmediate as turn } from "node:timers/promises";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "holdfast";
import { Redis } from "ioredis";

const ROOM = 4;
const JOBS = 60;
const PRODUCERS = 3;
const CONSUMERS = 3;

/** Stands for a table that all processes share. Only the holder of the mutex may use it. */
const buffer: number[] = [];
let fullest = 0;

async function produce(holdfast: Holdfast, jobs: readonly number[]): Promise<void> {
  const mutex = holdfast.mutex("buffer");
  for (const job of jobs) {
    let lease = await mutex.acquire();
    // A loop, because another producer may fill the place after the signal.
    while (buffer.length === ROOM) lease = await mutex.condition("not full").wait(lease);
    await turn();
    buffer.push(job);
    fullest = Math.max(fullest, buffer.length);
    await mutex.condition("not empty").signal(lease);
    await lease.release();
  }
}

async function consume(holdfast: Holdfast, count: number): Promise<number[]> {
  const mutex = holdfast.mutex("buffer");
  const taken: number[] = [];
  while (taken.length < count) {
    let lease = await mutex.acquire();
    while (buffer.length === 0) lease = await mutex.condition("not empty").wait(lease);
    await turn();
    taken.push(buffer.shift() as number);
    await mutex.condition("not full").signal(lease);
    await lease.release();
  }
  return taken;
}

const keyspace = new Keyspace();
const clients: Redis[] = [];
function connect(): HoldfastOptions {
  if (process.env.REDIS_URL === undefined) return { store: embedded({ keyspace }) };
  const redis = new Redis(process.env.REDIS_URL);
  clients.push(redis);
  return { redis };
}

// Each client stands for a process.
const [here, there] = [createHoldfast(connect()), createHoldfast(connect())];
const jobs = Array.from({ length: JOBS }, (_, i) => i);
const consuming = Array.from({ length: CONSUMERS }, () => consume(there, JOBS / CONSUMERS));
const producing = Array.from({ length: PRODUCERS }, (_, i) =>
  produce(
    here,
    jobs.filter((job) => job % PRODUCERS === i),
  ),
);
await Promise.all(producing);
const taken = (await Promise.all(consuming)).flat();

assert.deepEqual(
  taken.toSorted((a, b) => a - b),
  jobs,
);
assert.equal(buffer.length, 0);
assert.ok(fullest <= ROOM);
process.stdout.write(`producer-consumer: ${taken.length} jobs, each taken once, never more than ${fullest} waiting\n`);

await Promise.all([here.close(), there.close()]);
for (const client of clients) client.disconnect();
