// @ts-check
/**
 * Callers of one process who all want permits of one semaphore, in random portions, until they are told to stop.
 *
 * What they do is written to a file before anything else happens, so that it is known even of a process that is
 * killed at any moment: a line when permits are had, and one before they are given back.
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

/** Numbers from 0 up to 1, the same for the same seed. @param {number} state */
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
    // A lease that a stalled machine has cost us is not held any more, for however long nobody has known it.
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

  /** Answers when every caller has finished the turn that it was waiting for. */
  async stop() {
    isStopping = true;
    await Promise.all(working);
    await holdfast.close();
  },
});
