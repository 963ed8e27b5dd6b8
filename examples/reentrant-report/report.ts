/**
 * Functions that each take the lock they need, and call each other. With a plain mutex the outer one would wait for
 * itself; with a reentrant one each of them is safe alone and inside any other.
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

/** One line. Whoever calls it alone gets the lock for it. */
async function append(line: string): Promise<void> {
  await lock.run(async (lease) => {
    grants.add(lease.token);
    await turn();
    lease.assertHeld();
    lines.push(line);
  });
}

/** A section is never interrupted by another one. */
async function section(title: string, rows: readonly string[]): Promise<void> {
  await lock.run(async () => {
    await append(`# ${title}`);
    for (const row of rows) await append(`${title}: ${row}`);
  });
}

/** Nor is the report, although every part of it takes the lock again. */
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
// Three grants of the server, although the lock was taken 17 times: each report, and the remark.
assert.equal(grants.size, 3);
process.stdout.write(`report: ${lines.length} lines in order, ${grants.size} grants\n`);

await holdfast.close();
redis?.disconnect();
