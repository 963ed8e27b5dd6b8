// @ts-check
/** A holder in a separate process that checks its lease, freezes, and then writes. */
import process from "node:process";
import { fence } from "@holdfast/pg";
import { fencedSet } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import pg from "pg";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis });

/** @param {unknown} error */
function outcomeOf(error) {
  if (!(error instanceof Error)) throw error;
  return { error: error.name };
}

serve({
  /**
   * Acquires the lock, checks its lease, freezes itself immediately after that, and writes when it is resumed.
   *
   * @param {{ name: string, key: string, leaseMs: number, how: "plain" | "fenced" }} input
   */
  async set({ name, key, leaseMs, how }) {
    const lease = await holdfast.mutex(name).acquire({ leaseMs });
    await tell("checking", { token: lease.token });
    lease.assertHeld();
    process.kill(process.pid, "SIGSTOP");
    try {
      if (how === "plain") await redis.set(key, "late");
      else await fencedSet(redis, { key, value: "late", lease });
      return { token: lease.token, validForMs: lease.validForMs(), written: true };
    } catch (error) {
      return { token: lease.token, validForMs: lease.validForMs(), ...outcomeOf(error) };
    }
  },

  /**
   * The same with a row of PostgreSQL. The process freezes before or after the fence mark is raised.
   *
   * @param {{ name: string, resource: string, leaseMs: number, how: "plain" | "fenced", stop: "before" | "after" }} input
   */
  async update({ name, resource, leaseMs, how, stop }) {
    const client = new pg.Client({ connectionString: args.databaseUrl });
    // A server that ends the session also emits an error on the client.
    client.on("error", () => {});
    await client.connect();
    const lease = await holdfast.mutex(name).acquire({ leaseMs });
    try {
      await client.query("begin");
      if (stop === "after") await fence(client, resource, lease);
      await tell("checking", { token: lease.token });
      lease.assertHeld();
      process.kill(process.pid, "SIGSTOP");
      if (stop === "before" && how === "fenced") await fence(client, resource, lease);
      await client.query("update row set value = value || 'late ' where id = $1", [resource]);
      await client.query("commit");
      return { token: lease.token, written: true };
    } catch (error) {
      await client.query("rollback").catch(() => {});
      return { token: lease.token, ...outcomeOf(error) };
    } finally {
      await client.end().catch(() => {});
    }
  },

  /**
   * Takes from a counter, one request at a time.
   *
   * @param {{ name: string, requests: string[] }} input
   */
  async buy({ name, requests }) {
    const { counter } = await import("@holdfast/recipes");
    const stock = counter(holdfast, name);
    let sold = 0;
    for (const requestId of requests) {
      if ((await stock.take(1, { requestId })) !== null) sold += 1;
      if (sold === 1) await tell("sold");
    }
    return sold;
  },
});
