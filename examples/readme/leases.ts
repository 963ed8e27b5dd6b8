import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { AcquireTimeoutError, createHoldfast } from "holdfast";

const holdfast = createHoldfast({ store: embedded() });
const report = holdfast.mutex("nightly report");

async function makeReport(): Promise<string> {
  await using lease = await report.acquire({ label: "by cron" }); // released when the block ends
  return `written with token ${lease.token}`;
}

async function makeReportUnlessBusy(): Promise<string | null> {
  const lease = await report.tryAcquire(); // one attempt; null if the lock is held
  if (lease === null) return null;
  try {
    return await summary(lease.signal);
  } finally {
    await lease.release();
  }
}

async function whoIsInTheWay(): Promise<string> {
  try {
    return await report.run(() => "nobody", { waitMs: 50 });
  } catch (error) {
    if (!(error instanceof AcquireTimeoutError)) throw error;
    return error.holder?.label ?? "somebody";
  }
}

async function summary(signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  return "short";
}

assert.match(await makeReport(), /^written with token \d+$/);
assert.equal(await makeReportUnlessBusy(), "short");

const held = await report.acquire({ label: "by hand" });
assert.equal(await makeReportUnlessBusy(), null);
assert.equal(await whoIsInTheWay(), "by hand");
assert.ok(held.validForMs() > 0 && held.validForMs() < 30_000);
assert.equal(await held.release(), "released");
assert.throws(() => held.assertHeld(), { code: "ERR_LOCK_LEASE_LOST", reason: "released" });
await holdfast.close();
