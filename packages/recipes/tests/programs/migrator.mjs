// @ts-check
/** A pod that migrates the database when it starts and then serves. */

import { once } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import pg from "pg";
import { args, serve } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis });

serve({
  /** @param {{ version: string, steps: number, stepMs: number, fails?: boolean, leaseMs?: number }} input */
  async start({ version, steps, stepMs, fails = false, leaseMs = 30_000 }) {
    const { value, replayed, attempt } = await once(
      holdfast,
      `migrate:${version}`,
      async (lease) => {
        const client = new pg.Client({ connectionString: args.url });
        await client.connect();
        try {
          await client.query("BEGIN");
          await client.query(`CREATE TABLE t_${version} (step int NOT NULL, pid int NOT NULL)`);
          for (let step = 0; step < steps; step += 1) {
            lease.signal.throwIfAborted();
            await client.query(`INSERT INTO t_${version} VALUES ($1, $2)`, [step, process.pid]);
            process.send?.({ name: "step" });
            await new Promise((resolve) => setTimeout(resolve, stepMs));
            if (fails) throw new Error(`step ${step} of ${version} is wrong`);
          }
          await client.query("COMMIT");
          return process.pid;
        } finally {
          await client.end();
        }
      },
      { leaseMs, whenRunning: "wait", waitMs: 600_000, label: `migrate ${version}` },
    );
    return { by: value, replayed, attempt };
  },
});
