/**
 * Workers that make ids from the time, their worker number and a count. Ids are unique as long as no two workers have
 * the same number at the same time. One worker releases its number, one crashes, and new workers take over their
 * numbers.
 *
 *     npm run build && node examples/dist/worker-slots/worker-slots.js
 *
 * It runs in this process, or on the server that REDIS_URL names.
 */
import { strict as assert } from "node:assert";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { embedded, Keyspace } from "@holdfast/embedded";
import { type WorkerSlot, workerSlot } from "@holdfast/recipes";
import { createHoldfast, type Holdfast, type HoldfastOptions, type Store } from "holdfast";
import { Redis } from "ioredis";

const COUNT = 4;
const IDS = 500;

/** Makes ids of 41 bits for the time, 10 for the worker number and 12 for a count. */
class IdMaker {
  readonly #slot: WorkerSlot;
  #lastMs: number;
  #count = 0;

  constructor(slot: WorkerSlot) {
    this.#slot = slot;
    // Earlier holders of the number have made no id after this time.
    this.#lastMs = slot.notBeforeAtMs;
    this.#count = 4_095;
  }

  /** @throws LeaseLostError  another worker may have the number now */
  async next(): Promise<bigint> {
    let nowMs = Date.now();
    // Wait if the clock was set back, or if this millisecond has no ids left.
    while (nowMs < this.#lastMs || (nowMs === this.#lastMs && this.#count === 4_095)) {
      await pause(1);
      nowMs = Date.now();
    }
    // Check after reading the clock. This is cheap, and correct even after a pause.
    this.#slot.assertHeld();
    this.#count = nowMs === this.#lastMs ? this.#count + 1 : 0;
    this.#lastMs = nowMs;
    return (BigInt(nowMs) << 22n) | BigInt((this.#slot.number << 12) | this.#count);
  }
}

const keyspace = new Keyspace();
const clients: Redis[] = [];
const holdfasts: Holdfast[] = [];

/** A connection that can be cut, after which nothing reaches the server, as after a crash. */
function connect(): { options: HoldfastOptions; cut: () => void } {
  if (process.env.REDIS_URL === undefined) {
    const store = embedded({ keyspace });
    let isCut = false;
    const mortal: Store = {
      kind: store.kind,
      run: (...call) => (isCut ? new Promise<never>(() => {}) : store.run(...call)),
      inbox: (...call) => store.inbox(...call),
      onReconnect: (listener) => store.onReconnect(listener),
      close: () => store.close(),
    };
    return {
      options: { store: mortal },
      cut: () => {
        isCut = true;
      },
    };
  }
  const redis = new Redis(process.env.REDIS_URL);
  clients.push(redis);
  return { options: { redis }, cut: () => redis.disconnect() };
}

async function startWorker(leaseMs = 60_000): Promise<{ slot: WorkerSlot; ids: IdMaker; die: () => void }> {
  const { options, cut } = connect();
  const holdfast = createHoldfast(options);
  const slot = await workerSlot(holdfast, "id-workers", { count: COUNT, leaseMs, restMs: 200 });
  holdfasts.push(holdfast);
  return { slot, ids: new IdMaker(slot), die: cut };
}

const made: bigint[] = [];
async function make(ids: IdMaker): Promise<void> {
  for (let i = 0; i < IDS; i += 1) made.push(await ids.next());
}

// The second worker will die. Its lease is short because its successor waits until it ends.
const workers = [await startWorker(), await startWorker(1_500), await startWorker(), await startWorker()];
assert.deepEqual(
  workers.map(({ slot }) => slot.number),
  [0, 1, 2, 3],
);
await Promise.all(workers.map(({ ids }) => make(ids)));

// A released number is free immediately.
const [, dying, leaving] = workers as [unknown, (typeof workers)[0], (typeof workers)[0]];
await leaving.slot.release();
const second = await startWorker();
assert.equal(second.slot.number, leaving.slot.number);
await assert.rejects(leaving.ids.next());
await make(second.ids);

// The number of a crashed worker is free after its lease and its rest. That worker can make no more ids.
dying.die();
const third = await startWorker();
assert.equal(third.slot.number, dying.slot.number);
assert.ok(third.slot.notBeforeAtMs > 0);
await assert.rejects(dying.ids.next());
await make(third.ids);

assert.equal(new Set(made).size, made.length);
const [{ ids: late }] = workers as [(typeof workers)[0]];
await make(late);
const { used } = await (holdfasts[0] as Holdfast).semaphore("id-workers", { permits: COUNT }).inspect();
assert.equal(used, COUNT);
process.stdout.write(
  `workers: ${made.length} ids, ${new Set(made).size} different; worker ${second.slot.number} succeeds one that left, worker ${third.slot.number} one that died\n`,
);

await Promise.all(holdfasts.map((holdfast) => holdfast.close()));
for (const client of clients) client.disconnect();
