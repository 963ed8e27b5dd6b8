/**
 * A cache of several parts that many read and now and then one rebuilds. Readers share the lock; the one who rebuilds
 * has it alone, and then reads on to check its work while the others are already back.
 *
 *     npm run build && node examples/dist/cache-rebuild/cache-rebuild.js
 *
 * It runs in this process, or on the server that REDIS_URL names.
 */
import { strict as assert } from "node:assert";
import { setImmediate as turn } from "node:timers/promises";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "holdfast";
import { Redis } from "ioredis";

const PARTS = ["prices", "stock", "texts"];
const REBUILDS = 5;

/** Stands for a cache that several processes share: each part is written by itself, in its own time. */
const cache = new Map(PARTS.map((part) => [part, 0]));
let checked = 0;

/** What one page needs: all parts, of one and the same build. */
async function readPage(holdfast: Holdfast): Promise<number> {
  return holdfast.readWriteLock("catalogue").read.run(async (lease) => {
    const builds: number[] = [];
    for (const part of PARTS) {
      builds.push(cache.get(part) ?? -1);
      await turn();
    }
    lease.assertHeld(); // or somebody may have rebuilt it while it was read
    assert.equal(new Set(builds).size, 1, `a page of several builds: ${builds.join(", ")}`);
    return builds[0] ?? -1;
  });
}

async function rebuild(holdfast: Holdfast): Promise<void> {
  const lease = await holdfast.readWriteLock("catalogue").write.acquire();
  const build = (cache.get("prices") ?? 0) + 1;
  for (const part of PARTS) {
    await turn();
    lease.assertHeld();
    cache.set(part, build);
  }
  // From here on pages are read again, but nobody can rebuild under our eyes.
  await lease.downgrade();
  for (const part of PARTS) {
    await turn();
    assert.equal(cache.get(part), build);
  }
  checked += 1;
  await lease.release();
}

/** Whoever finds the cache old rebuilds it, if nobody else is just reading it. */
async function rebuildIfIdle(holdfast: Holdfast): Promise<boolean> {
  const lease = await holdfast.readWriteLock("catalogue").read.acquire();
  const { token } = lease;
  const upgraded = await lease.tryUpgrade();
  if (upgraded !== null) {
    assert.ok(upgraded.token > token, "what is written from now on carries a new token");
    for (const part of PARTS) cache.set(part, (cache.get(part) ?? 0) + 1);
  }
  await lease.release();
  return upgraded !== null;
}

const keyspace = new Keyspace();
const clients: Redis[] = [];
function connect(): HoldfastOptions {
  if (process.env.REDIS_URL === undefined) return { store: embedded({ keyspace }) };
  const redis = new Redis(process.env.REDIS_URL);
  clients.push(redis);
  return { redis };
}

// Two clients stand for two processes.
const [pages, builder] = [createHoldfast(connect()), createHoldfast(connect())];
const reading = Array.from({ length: 200 }, () => readPage(pages));
const building = Array.from({ length: REBUILDS }, () => rebuild(builder));
reading.push(...Array.from({ length: 200 }, () => readPage(pages)));
const builds = await Promise.all(reading);
await Promise.all(building);

assert.equal(checked, REBUILDS);
assert.equal(await readPage(pages), REBUILDS);
assert.equal(await rebuildIfIdle(builder), true);
assert.equal(await readPage(pages), REBUILDS + 1);
process.stdout.write(`cache: ${builds.length} pages read, each of one build, while it was rebuilt ${checked} times\n`);

await Promise.all([pages.close(), builder.close()]);
for (const client of clients) client.disconnect();
