/**
 * A cache of several parts that many processes read and one sometimes rebuilds. Readers share the lock. The process
 * that rebuilds holds it alone, and then downgrades to check its work while other readers are already admitted.
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

/** Stands for a cache that several processes share. Its parts are written one after another. */
const cache = new Map(PARTS.map((part) => [part, 0]));
let checked = 0;

/** Reads a page: it needs all parts, and all from the same build. */
async function readPage(holdfast: Holdfast): Promise<number> {
  return holdfast.readWriteLock("catalogue").read.run(async (lease) => {
    const builds: number[] = [];
    for (const part of PARTS) {
      builds.push(cache.get(part) ?? -1);
      await turn();
    }
    lease.assertHeld(); // otherwise, another process may have rebuilt the cache during the read
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
  // From here on, pages can be read again, but no other process can rebuild the cache during the check.
  await lease.downgrade();
  for (const part of PARTS) {
    await turn();
    assert.equal(cache.get(part), build);
  }
  checked += 1;
  await lease.release();
}

/** Rebuilds the cache if there is no other reader at the moment. */
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

// Each client stands for a process.
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
