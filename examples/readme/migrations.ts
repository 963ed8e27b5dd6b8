/** Ten pods start at the same time, and one of them migrates the database. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import process from "node:process";
import { once } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

const version = `2026-03-01-${randomUUID()}`;
const migrations: string[] = [];
async function migrate({ signal }: { signal: AbortSignal }) {
  signal.throwIfAborted();
  migrations.push(version);
}

async function start() {
  await once(holdfast, `migrate:${version}`, (lease) => migrate({ signal: lease.signal }), {
    whenRunning: "wait", // the other pods continue when it is done
    waitMs: 600_000,
    label: `migrate ${version}`, // what waiting pods see
  });
  // The database has this version now.
}

await Promise.all(Array.from({ length: 10 }, start));
await start(); // a pod that comes later
assert.deepEqual(migrations, [version]);

await holdfast.close();
redis.disconnect();
