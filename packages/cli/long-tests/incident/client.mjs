// @ts-check
/** A service of the incident in a separate process. It holds locks and waits for locks until it is killed. */

import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import process from "node:process";
import { createHoldfast } from "holdfast";
import { recordHistory } from "holdfast/admin";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

// Simulate a separate host, with the same names in every run.
os.hostname = () => args.host;
Object.defineProperty(process, "pid", { value: args.pid });
syncBuiltinESMExports();

const clients = args.ports.map((/** @type {number} */ port) => {
  const redis = new Redis({ port, maxRetriesPerRequest: 1 });
  redis.on("error", () => {});
  return redis;
});
// A server that writes each command to a slow disk may need long for a reply.
const settings = { clientName: args.app, commandTimeoutMs: 60_000 };
const holdfast =
  clients.length === 1
    ? createHoldfast({ redis: clients[0], ...settings })
    : createHoldfast({ redlock: clients, ...settings });
if (clients.length === 1) recordHistory(holdfast, { everyMs: 250 });

const AT_ONCE = 20;

/** @param {string} name */
const lockOf = (name) => (clients.length === 1 ? holdfast.mutex(name) : holdfast.redlock(name));

serve({
  /**
   * Acquires the locks, and reports each one that is lost.
   *
   * @param {{ names: string[], leaseMs: number, label?: string }} input
   */
  async hold({ names, ...options }) {
    for (const waitMs = 120_000, left = [...names]; left.length > 0; ) {
      const some = left.splice(0, AT_ONCE).map((name) => lockOf(name).acquire({ waitMs, ...options }));
      for (const lease of await Promise.all(some))
        lease.signal.addEventListener("abort", () => void tell("lost", lease.name));
    }
  },

  /** @param {{ name: string, by: string, label: string, forMs: number }} input */
  async pause({ name, by, label, forMs }) {
    await holdfast.pause(name, { by, label, untilAtMs: Date.now() + forMs });
  },

  /**
   * Waits for the lock, and holds it once it is granted. Replies as soon as the waiter is in the queue.
   *
   * @param {{ name: string, leaseMs: number, label?: string, throughPause?: boolean }} input
   */
  async wait({ name, ...options }) {
    const before = (await lockOf(name).inspect()).waiterCount;
    lockOf(name)
      .acquire({ waitMs: Number.POSITIVE_INFINITY, ...options })
      .then(
        () => tell("granted", name),
        () => undefined,
      );
    while ((await lockOf(name).inspect()).waiterCount <= before)
      await new Promise((resolve) => setTimeout(resolve, 20));
  },
});
