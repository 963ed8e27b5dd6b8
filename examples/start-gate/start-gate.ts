/**
 * A load test whose workers start at the same moment and go from phase to phase together. A latch is the start gate: it
 * opens when all workers are ready. A barrier separates the phases: no worker starts a phase before all have finished
 * the previous one. If a worker dies, the others get an error instead of waiting for it.
 *
 *     npm run build && node examples/dist/start-gate/start-gate.js
 *
 * It runs in this process, or on the server that REDIS_URL names.
 */
import { strict as assert } from "node:assert";
import { setImmediate as turn } from "node:timers/promises";
import { embedded, Keyspace } from "@holdfast/embedded";
import { BrokenBarrierError, createHoldfast, type Holdfast, type HoldfastOptions } from "holdfast";
import { Redis } from "ioredis";

const WORKERS = 4;
const PHASES = 3;

/** The events, in order. */
const log: string[] = [];

async function work(holdfast: Holdfast, worker: number): Promise<void> {
  const gate = holdfast.countDownLatch("start");
  const barrier = holdfast.barrier("phase", { parties: WORKERS });
  for (let i = 0; i < worker; i += 1) await turn(); // some take longer to get ready
  log.push("ready");
  // The worker's name is its caller id, so a restarted worker is not counted twice.
  await gate.countDown(1, { callerId: `worker ${worker}` });
  await gate.await({ waitMs: 30_000 });
  for (let phase = 1; phase <= PHASES; phase += 1) {
    log.push(`phase ${phase}`);
    await barrier.arrive({ label: `worker ${worker}`, waitMs: 30_000 });
  }
}

const keyspace = new Keyspace();
const clients: Redis[] = [];
function connect(): HoldfastOptions {
  if (process.env.REDIS_URL === undefined) return { store: embedded({ keyspace }) };
  const redis = new Redis(process.env.REDIS_URL);
  clients.push(redis);
  return { redis };
}

// Each worker has its own client, like a process.
const workers = Array.from({ length: WORKERS }, () => createHoldfast(connect()));
const [first] = workers as [Holdfast];
assert.equal(await first.countDownLatch("start").trySetCount(WORKERS), true);
await Promise.all(workers.map(work));
const expected = ["ready", ...Array.from({ length: PHASES }, (_, i) => `phase ${i + 1}`)];
assert.deepEqual(
  log,
  expected.flatMap((line) => Array<string>(WORKERS).fill(line)),
);

// In one more phase, a worker ends, and the others do not wait for it.
const barrier = (holdfast: Holdfast) => holdfast.barrier("phase", { parties: WORKERS });
const arrivals = workers.slice(1).map((holdfast) => barrier(holdfast).arrive({ waitMs: 30_000 }));
const ends = Promise.allSettled(arrivals);
while ((await barrier(first).inspect()).arrived.length < WORKERS - 1) await turn();
await workers[1]?.close();
const broken = (await ends).map((end) => (end.status === "rejected" ? end.reason : undefined));
assert.equal(broken.filter((reason) => reason instanceof BrokenBarrierError && reason.reason === "left").length, 2);
// The barrier stays broken, also for the next run on the same server, until it is reset.
await barrier(first).reset();

process.stdout.write(`start-gate: ${WORKERS} workers, ${PHASES} phases in step, and one broken in sight of all\n`);
await Promise.all(workers.map((holdfast) => holdfast.close()));
for (const client of clients) client.disconnect();
