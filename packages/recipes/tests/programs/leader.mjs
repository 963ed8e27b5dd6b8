// @ts-check
/** A process that leads with `lead` and resigns on SIGTERM. */
import process from "node:process";
import { lead } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis });
const election = holdfast.election(args.name);

process.on("SIGTERM", () => {
  void (async () => {
    const { role } = election.health(60_000);
    await tell("resigned", { role, outcome: await election.resign() });
  })();
});

serve({
  /**
   * Leads until it resigns or loses its lease, and reports when it begins.
   *
   * @param {{ value: string, leaseMs: number, delayMaxMs?: number, mark: string, spins?: boolean }} input
   */
  async lead({ value, leaseMs, delayMaxMs = 0, mark, spins = false }) {
    try {
      await lead(
        election,
        async (leadership) => {
          await tell("leading", leadership.term);
          if (spins) {
            // A busy loop, so that no timer runs. The test freezes the process here.
            for (const beganMs = Date.now(); Date.now() - beganMs < leaseMs; );
            const isHeld = leadership.validForMs() > 0;
            const { role } = election.health(60_000);
            await tell("thawed", { isHeld, role, isAborted: leadership.signal.aborted });
          }
          while (!leadership.signal.aborted) {
            await redis.set(mark, String(leadership.term));
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
        },
        { value, leaseMs, delayMaxMs },
      );
      return { error: undefined };
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return { error: error.name };
    }
  },
});
