// @ts-check
/** A process that works under many leases and closes Holdfast when it receives a signal. */
import process from "node:process";
import { closeOnSignal, createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis, leaseMs: 60_000 });

closeOnSignal(holdfast, ["SIGTERM", "SIGINT"], {
  graceMs: args.graceMs,
  async onClosed({ released, unsettled }) {
    await tell("closed", { released: released.length, unsettled: unsettled.map(({ name }) => name) });
    // After this, only the library could keep the process alive.
    redis.disconnect();
    process.disconnect();
  },
});

serve({
  /** Waits for a lock that it never acquires. @param {{ name: string }} input */
  wait({ name }) {
    void holdfast
      .mutex(name)
      .acquire({ waitMs: Infinity })
      .catch(() => {});
  },

  /** @param {{ names: string[], heeds: boolean, leaseMs?: number }} input */
  async work({ names, heeds, leaseMs = 60_000 }) {
    /** @param {string} name */
    const begin = (name) =>
      new Promise((resolve, reject) => {
        holdfast
          .mutex(name)
          .run(
            async ({ signal }) => {
              resolve(undefined);
              await new Promise((end) => heeds && signal.addEventListener("abort", end));
            },
            { leaseMs },
          )
          .catch(reject);
      });
    await Promise.all(names.map(begin));
  },
});
