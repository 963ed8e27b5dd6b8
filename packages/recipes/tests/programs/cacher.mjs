// @ts-check
/** A caller of a cache in a separate process. */

import { cache } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const effects = new Redis({ port: args.effectsPort ?? args.port });
redis.on("error", () => {});
const holdfast = createHoldfast({ redis, commandTimeoutMs: args.commandTimeoutMs ?? 60_000 });

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** @type {() => void} */
let finish = () => {};
const finished = new Promise((resolve) => {
  finish = () => resolve(undefined);
});

serve({
  /**
   * Makes `calls` calls at the same time. Each load counts itself, reports that it has begun, and takes `loadMs` or
   * until `finish` is called.
   *
   * @param {{ key: string, calls: number, leaseMs: number, loadMs?: number, value: string, waitMs?: number }} input
   * @returns how often each value was returned
   */
  async get({ key, calls, leaseMs, loadMs, value, waitMs = 120_000 }) {
    const users = cache(holdfast, "user", { leaseMs });
    const load = async () => {
      await effects.incr(`${key}:loads`);
      await tell("loading");
      await (loadMs === undefined ? finished : sleep(loadMs));
      return value;
    };
    const got = await Promise.all(Array.from({ length: calls }, () => users.get(key, load, { waitMs })));
    return got.reduce((/** @type {Record<string, number>} */ all, each) => {
      all[each] = (all[each] ?? 0) + 1;
      return all;
    }, {});
  },

  finish: () => finish(),

  /** Connects first, so that the start of the process does not count in measured times. */
  async connect() {
    await Promise.all([redis.ping(), effects.ping()]);
  },
});
