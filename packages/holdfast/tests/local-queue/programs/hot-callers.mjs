// @ts-check
/**
 * Callers of one process who all want one mutex, with nothing to do while they have it, until they are told to stop.
 *
 * Each lease is five numbers in a file, written in portions before more is asked for, so that most is known even of a process
 * that is killed at any moment: caller, token, and when it called, began and ended, on the clock of the machine.
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
    // Nobody holds for longer than it may, also where the process stands still between two lines.
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

  /** Answers when every caller has had the turn that it was waiting for. */
  async stop() {
    isStopping = true;
    await Promise.all(working);
    flush();
    await holdfast.close();
  },
});
