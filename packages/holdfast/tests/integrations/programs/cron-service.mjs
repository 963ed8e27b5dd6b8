// @ts-check
/** A service instance in its own process that coordinates its node-cron fires. */
import { createHoldfast } from "holdfast";
import { runCoordinator } from "holdfast/node-cron";
import { Redis } from "ioredis";
import { args, serve } from "../../faults/programs/serve.mjs";

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
