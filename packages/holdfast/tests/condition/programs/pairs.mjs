// @ts-check
/** Callers of one process that wait for a condition or signal it, all on one mutex. */
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve } from "../../faults/programs/serve.mjs";

const holdfast = createHoldfast({ redis: new Redis({ port: args.port }) });
const mutex = holdfast.mutex(args.name);
const condition = mutex.condition("turn");
const stopping = new AbortController();
/** @type {number[]} */
const tokens = [];
/** @type {Promise<void>[]} */
const waiting = [];
let held = 0;

async function wait() {
  const options = { waitMs: Infinity, signal: stopping.signal };
  let lease = await mutex.acquire(options);
  for (;;) {
    lease = await condition.wait(lease, options);
    held += 1;
    if (held !== 1) throw new Error("two callers of one process hold the mutex");
    tokens.push(lease.token);
    held -= 1;
  }
}

serve({
  /** Starts callers that wait again as soon as they wake. @param {{ callers: number }} input */
  start({ callers }) {
    for (let i = 0; i < callers; i += 1) {
      waiting.push(
        wait().catch((reason) => {
          if (reason !== stopping.signal.reason) throw reason;
        }),
      );
    }
  },

  /** Signals `signals` waiters in total, one to three under each lease. @param {{ signals: number }} input */
  async signal({ signals }) {
    let signalled = 0;
    let calls = 0;
    while (signalled < signals) {
      const lease = await mutex.acquire({ waitMs: Infinity });
      for (let i = 0; i <= calls % 3 && signalled < signals; i += 1) signalled += await condition.signal(lease);
      calls += 1;
      await lease.release();
    }
    return signalled;
  },

  /** The token of every wake-up. */
  wakeUps: () => Float64Array.from(tokens),

  async stop() {
    stopping.abort("the test is over");
    await Promise.all(waiting);
    await holdfast.close();
  },
});
