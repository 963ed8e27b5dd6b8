/** Fenced writes: a value in Redis and a file refuse the write of a late holder. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fencedSet, fenceGuard, StaleTokenError } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
const report = { id: randomUUID() };
const built: string[] = [];
const build = async (_signal: AbortSignal): Promise<string> => {
  built.push(report.id);
  return `report ${report.id}, built ${built.length} times`;
};

await holdfast.mutex(`report:${report.id}`).run(async (lease) => {
  const value = await build(lease.signal); // may take a while, and the machine may freeze at its end
  await fencedSet(redis, { key: `report:${report.id}`, value, lease }); // refused if a later holder was granted the lock
});
assert.equal(await redis.get(`report:${report.id}`), `report ${report.id}, built 1 times`);

const mutex = holdfast.mutex(`stock:${report.id}`);
const sleeper = await mutex.acquire({ leaseMs: 100, renew: false }); // and does not check its lease again
const next = await mutex.acquire({ waitMs: 5_000 }); // granted when that lease is over

const key = `stock:${report.id}`;
await fencedSet(redis, { key, value: "written by the next holder", lease: next });
await assert.rejects(fencedSet(redis, { key, value: "written too late", lease: sleeper }), (error: unknown) => {
  assert(error instanceof StaleTokenError);
  assert.equal(error.token, sleeper.token);
  assert.equal(error.seen, next.token);
  return true;
});
assert.equal(await redis.get(key), "written by the next holder");

// A file that only this process writes.
const directory = mkdtempSync(join(tmpdir(), "holdfast-fenced-"));
const file = join(directory, "stock.txt");
const guard = fenceGuard();
await guard.run(file, next, () => writeFile(file, "written by the next holder"));
await assert.rejects(
  guard.run(file, sleeper, () => writeFile(file, "written too late")),
  StaleTokenError,
);
assert.equal(readFileSync(file, "utf8"), "written by the next holder");
rmSync(directory, { recursive: true });

await next.release();
await holdfast.close();
redis.disconnect();
