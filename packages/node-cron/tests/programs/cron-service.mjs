// @ts-check
/** A service instance in its own process that coordinates its node-cron fires. */

import { runCoordinator } from "@holdfast/node-cron";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve } from "../../../holdfast/tests/faults/programs/serve.mjs";

const coordinator = runCoordinator(createHoldfast({ redis: new Redis({ port: args.port }) }), {
  name: args.name,
  history: true,
});

serve({
  /** @param {{ key: string, ttlMs: number }} input */
  shouldRun: ({ key, ttlMs }) => coordinator.shouldRun(key, ttlMs),
  /** @param {{ key: string }} input */
  onComplete: ({ key }) => coordinator.onComplete(key),
});
