// @ts-check
/** A process that acquires, holds and waits on request, so that a test can kill or freeze it meanwhile. */
import process from "node:process";
import { createHoldfast } from "holdfast";
import { retain } from "holdfast/retain";
import { Redis } from "ioredis";
import { args, serve, sharedClockMs, tell } from "./serve.mjs";

const redis = new Redis({ port: args.port });
redis.on("error", () => {});
const holdfast = createHoldfast({ redis });
/** @type {Map<string, { lease: import("holdfast").Lease, aborts: number }>} */
const held = new Map();

/** The resource that a lock protects: rejects a token lower than one it has seen. */
const FENCED_WRITE = `
local highest = redis.call('HGET', KEYS[1], 'token')
if highest and highest - ARGV[1] > 0 then return 0 end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
return 1`;

/** @param {string} as */
function entry(as) {
  const found = held.get(as);
  if (found === undefined) throw new Error(`nothing is held as ${as}`);
  return found;
}

serve({
  /** Replies as soon as the process runs. */
  ready() {},

  async acquire({ name, as, options }) {
    const lease = await holdfast.mutex(name).acquire(options);
    const found = { lease, aborts: 0 };
    lease.signal.addEventListener("abort", () => {
      found.aborts += 1;
    });
    held.set(as, found);
    return { token: lease.token, owner: lease.owner, validForMs: lease.validForMs(), atMs: sharedClockMs() };
  },

  /** Acquires and releases until the process retains the lock. */
  async retain({ name, leaseMs }) {
    const mutex = holdfast.mutex(name, { retain: retain({ forMs: Math.floor(leaseMs / 3) }) });
    for (let owner = ""; ; ) {
      const lease = await mutex.acquire({ leaseMs });
      await lease.release();
      if (lease.owner === owner) return { owner, token: lease.token };
      owner = lease.owner;
    }
  },

  /** Queues callers without waiting for them. */
  queue({ name, count, options }) {
    for (let n = 0; n < count; n += 1)
      void holdfast
        .mutex(name)
        .acquire(options)
        .catch(() => {});
  },

  release: ({ as }) => entry(as).lease.release(),
  state: ({ as }) => ({ aborts: entry(as).aborts, validForMs: entry(as).lease.validForMs() }),

  /**
   * Blocks the event loop until the process has been frozen and resumed, then checks the lease immediately: no timer
   * and no message can have run in between.
   */
  workThroughPause({ as, pauseMs }) {
    const found = entry(as);
    const heldBefore = found.lease.validForMs() > 0;
    let last = sharedClockMs();
    // Written to the pipe before the call returns, so the freeze can come at any moment from here on.
    void tell("working");
    for (let now = last; now - last < pauseMs; now = sharedClockMs()) last = now;
    const pausedMs = sharedClockMs() - last;
    const validForMs = found.lease.validForMs();
    let error;
    try {
      found.lease.assertHeld();
    } catch (thrown) {
      const { name, reason } = /** @type {any} */ (thrown);
      error = { name, reason };
    }
    return { heldBefore, pausedMs, validForMs, error, isAborted: found.lease.signal.aborted };
  },

  write: ({ as, key, value }) => redis.eval(FENCED_WRITE, 1, key, entry(as).lease.token, value),

  exit: () => process.exit(0),
  fail() {
    setImmediate(() => {
      throw new Error("an error that nobody catches");
    });
  },
});
