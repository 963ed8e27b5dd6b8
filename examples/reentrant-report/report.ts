/**
 * Functions that acquire the same lock and call each other. With a plain mutex, the outer function would wait for
 * itself. With a reentrant mutex, each function is safe both alone and inside another one.
 *
 *     npm run build && node examples/dist/reentrant-report/report.js
 *
 * It runs in this process, or on the server that REDIS_URL names.
 */
import { strict as assert } from "node:assert";
import { setImmediate as turn } from "node:timers/promises";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = process.env.REDIS_URL === undefined ? undefined : new Redis(process.env.REDIS_URL);
const holdfast = createHoldfast(redis === undefined ? { store: embedded() } : { redis });

const lock = holdfast.reentrantMutex("report:2026-11");
const lines: string[] = [];
const grants = new Set<number>();

/** Appends one line. Acquires the lock if the caller does not hold it. */
async function append(line: string): Promise<void> {
  await lock.run(async (lease) => {
    grants.add(lease.token);
    await turn();
    lease.assertHeld();
    lines.push(line);
  });
}

/** Appends a section. Lines of other callers never interrupt it. */
async function section(title: string, rows: readonly string[]): Promise<void> {
  await lock.run(async () => {
    await append(`# ${title}`);
    for (const row of rows) await append(`${title}: ${row}`);
  });
}

/** Appends a report. It is not interrupted either, although each part acquires the lock again. */
async function report(): Promise<void> {
  await lock.run(async () => {
    await section("sales", ["north", "south"]);
    await section("stock", ["shelf 1"]);
    assert.equal(lock.holdCount, 1);
  });
}

await Promise.all([report(), append("a remark"), report()]);

const text = [...["# sales", "sales: north", "sales: south"], ...["# stock", "stock: shelf 1"]];
assert.deepEqual(lines, [...text, "a remark", ...text]);
// The lock was acquired 17 times with only three grants of the server: one per report, and one for the remark.
assert.equal(grants.size, 3);
process.stdout.write(`report: ${lines.length} lines in order, ${grants.size} grants\n`);

await holdfast.close();
redis?.disconnect();
