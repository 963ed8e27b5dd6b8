// @ts-check
/**
 * Callers of one process that acquire and release one mutex without doing any work until the test stops them.
 *
 * Each lease is logged as five numbers: the caller, the token, and the times of the call, the grant and the end on the
 * clock of the machine. They are written in batches, so a process that is killed loses at most one batch.
 */
import { openSync, writeSync } from "node:fs";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, sharedClockMs } from "../../faults/programs/serve.mjs";

const { port, name, callers, leaseMs, waitMs, log } = args;
const PORTION = 500;
const FIELDS = 5;

const holdfast = createHoldfast({ redis: new Redis({ port }) });
const mutex = holdfast.mutex(name);
const file = openSync(log, "a");
const portion = new Float64Array(PORTION * FIELDS);
let filled = 0;
let isStopping = false;
/** @type {Promise<void>[]} */
let working = [];

function flush() {
  writeSync(file, portion.subarray(0, filled));
  filled = 0;
}

/** @param {number} caller */
async function work(caller) {
  while (!isStopping) {
    const calledMs = sharedClockMs();
    const lease = await mutex.acquire({ leaseMs, waitMs });
    const beginMs = sharedClockMs();
    const validMs = lease.validForMs();
    // A hold ends with the lease, even if the process freezes between two statements.
    const endMs = Math.min(sharedClockMs(), beginMs + validMs);
    if (validMs > 0) {
      portion.set([caller, lease.token, calledMs, beginMs, endMs], filled);
      filled += FIELDS;
      if (filled === portion.length) flush();
    }
    await lease.release().catch((error) => {
      if (lease.validForMs() > 0) throw error;
    });
  }
}

serve({
  start() {
    working = Array.from({ length: callers }, (_, caller) => work(caller));
    for (const caller of working) caller.catch(() => {});
  },

  /** Resolves when every caller has finished its current turn. */
  async stop() {
    isStopping = true;
    await Promise.all(working);
    flush();
    await holdfast.close();
  },
});
