// @ts-check
/**
 * Callers of one process that acquire random numbers of permits of one semaphore until the test stops them.
 *
 * Each caller logs a line to a file when it gets permits and another before it releases them. The lines are written
 * synchronously so that the log is complete even if the process is killed.
 */
import { openSync, writeSync } from "node:fs";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, sharedClockMs } from "../../faults/programs/serve.mjs";

const { port, name, permits, callers, leaseMs, waitMs, seed, log } = args;
const holdfast = createHoldfast({ redis: new Redis({ port }) });
const semaphore = holdfast.semaphore(name, { permits });
const file = openSync(log, "a");
let isStopping = false;
/** @type {Promise<void>[]} */
let working = [];

/** @param {object} line */
function write(line) {
  writeSync(file, `${JSON.stringify(line)}\n`);
}

/** Pseudo-random numbers from 0 up to 1, repeatable with the same seed. @param {number} state */
function randomFrom(state) {
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** @param {number} caller */
async function work(caller) {
  const random = randomFrom(seed * 1_000 + caller);
  while (!isStopping) {
    const wanted = 1 + Math.floor(random() * 4);
    const lease = await semaphore.acquire({ permits: wanted, leaseMs, waitMs });
    const id = `${lease.owner} ${lease.token}`;
    write({ id, caller, permits: lease.permits, slots: lease.slots, beginMs: sharedClockMs() });
    await new Promise((resolve) => setTimeout(resolve, random() * 10));
    // If the machine stalls, the lease may have expired earlier than this process noticed.
    const isHeld = lease.validForMs() > 0;
    write(isHeld ? { id, endMs: sharedClockMs() } : { id, isLost: true });
    await lease.release().catch((error) => {
      if (isHeld) throw error;
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
    await holdfast.close();
  },
});
