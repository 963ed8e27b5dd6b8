// @ts-check
/** A process that campaigns in an election. */
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve } from "../../faults/programs/serve.mjs";

const holdfast = createHoldfast({ redis: new Redis({ port: args.port }) });
const election = holdfast.election(args.name);

serve({
  /** Resolves as soon as the process runs. */
  ready() {},

  /** @param {{ value: string, leaseMs: number }} input */
  async campaign({ value, leaseMs }) {
    const { term } = await election.campaign(value, { leaseMs, waitMs: Infinity });
    return term;
  },
});
