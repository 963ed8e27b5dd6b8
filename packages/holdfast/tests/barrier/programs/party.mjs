// @ts-check
/** A process that is a party of a barrier. */
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve } from "../../faults/programs/serve.mjs";

const holdfast = createHoldfast({ redis: new Redis({ port: args.port }), clientName: args.clientName });
const barrier = holdfast.barrier(args.name, { parties: args.parties });

serve({
  /** Resolves as soon as the process runs. */
  ready() {},

  /** @param {{ leaseMs?: number, label?: string }} options */
  arrive: (options) => barrier.arrive({ waitMs: 30_000, ...options }),

  /** Arrives once per generation. @param {{ generations: number }} input */
  async march({ generations }) {
    const passed = [];
    for (let i = 0; i < generations; i += 1) passed.push((await barrier.arrive({ waitMs: 30_000 })).generation);
    return passed;
  },
});
