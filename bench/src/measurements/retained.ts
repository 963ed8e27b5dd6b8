/** How often one process acquires and releases the same free lock, one at a time, if it retains the lock between callers. */
import { createHoldfast } from "holdfast";
import { retain } from "holdfast/retain";
import { newIoredis } from "../adapters/client.js";
import { target } from "../results.js";
import { infoNumber } from "../server.js";
import type { Conditions, Entry, Run } from "./entry.js";
import type { Measurement } from "./measurement.js";
import { warmUp } from "./warm-up.js";

const PLAIN = "holdfast";
const RETAINED = "holdfast/retain";
const LEASE_MS = 30_000;
/** The maximum that `retain` accepts for this lease. */
const FOR_MS = LEASE_MS / 3;
/** The clock is read once per batch, because reading it takes noticeable time compared with a pair. */
const BATCH = 100;

export const retained: Measurement = {
  name: "retained",
  title: () => "one process acquires and releases the same free name, one at a time",
  seconds: 2,
  figures: [
    { name: "acquires", unit: "/s", digits: 0, better: "more" },
    { name: "commands", unit: "per acquire", digits: 4, better: "less" },
  ],

  entries: () => [entryOf(PLAIN), { ...entryOf(RETAINED), yardstick: PLAIN }],

  targets: (results) => [
    target(
      "one process acquires the same free name repeatedly with `retain`",
      results.median(RETAINED, "acquires"),
      { atLeast: 500_000 },
      "acquires/s",
      0,
    ),
  ],
};

function entryOf(name: string): Entry {
  return {
    name,
    role: "own",
    async prepare({ connection, server: { control }, seconds }: Conditions) {
      const redis = await newIoredis(connection);
      const holdfast = createHoldfast({ redis, leaseMs: LEASE_MS });
      const options = name === RETAINED ? { retain: retain({ forMs: FOR_MS }) } : {};
      // Each entry has its own name, because a lock that others use is not retained for a while.
      const mutex = holdfast.mutex(`bench:${name}`, options);
      const run = async (): Promise<Run> => {
        const before = await infoNumber(control, "stats", "total_commands_processed");
        const beganAt = performance.now();
        let passedMs = 0;
        let acquires = 0;
        for (; passedMs < seconds * 1_000; passedMs = performance.now() - beganAt) {
          for (let i = 0; i < BATCH; i += 1) await (await mutex.acquire()).release();
          acquires += BATCH;
        }
        const commands = (await infoNumber(control, "stats", "total_commands_processed")) - before;
        return { values: [acquires / (passedMs / 1_000), commands / acquires] };
      };
      await warmUp(async () => (await run()).values[0] ?? 0);
      return {
        run,
        async close() {
          await holdfast.close();
          redis.disconnect();
        },
      };
    },
  };
}
