// @ts-check
/** A caller of every recipe in a separate process. All processes make a call at the same moment. */

import {
  cache,
  coalesce,
  counter,
  fencedSet,
  keyed,
  lead,
  once,
  SlotsTakenError,
  StaleTokenError,
  scheduled,
  versioned,
  workerSlot,
} from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { aborted, args, serve } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
// Long, because many simultaneous requests are slow on a slow machine, and retries do not help.
const holdfast = createHoldfast({ redis, commandTimeoutMs: 60_000 });
/** Longer than any test, so that a test that waits for a lease to expire times out. */
const leaseMs = 600_000;
/** @type {import("@holdfast/recipes").WorkerSlot | undefined} */
let slot;

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Records begin and end of the work on the server, which orders them across all processes. @param {string} name */
async function visit(name, mark = "", workMs = 1) {
  await redis.rpush(`${name}:visits`, `begin ${mark}`);
  await sleep(workMs);
  await redis.rpush(`${name}:visits`, `end ${mark}`);
}

/** @type {Record<string, (input: any) => unknown>} */
const calls = {
  /** @param {{ name: string }} input */
  async once({ name }) {
    const work = async (/** @type {import("@holdfast/recipes").OnceLease} */ { token }) => {
      await visit(name);
      return token;
    };
    const { value, replayed, attempt } = await once(holdfast, name, work, { waitMs: 600_000, leaseMs });
    return { value, replayed, attempt };
  },

  /** Leads briefly, or until it resigns if its term is the last one. @param {{ name: string, terms: number }} input */
  async lead({ name, terms }) {
    const election = holdfast.election(name);
    await lead(
      election,
      async ({ term, signal }) => {
        await redis.rpush(`${name}:visits`, `begin ${term}`);
        if ((await redis.incr(`${name}:terms`)) === terms) {
          await aborted(signal);
        }
        await redis.rpush(`${name}:visits`, `end ${term}`);
      },
      { delayMaxMs: 0, leaseMs },
    );
  },

  /** @param {{ name: string }} input */
  async scheduled({ name }) {
    const result = await scheduled(holdfast, name, () => visit(name), { everyMs: 3_600_000, leaseMs })();
    return result.outcome === "ran" ? "ran" : result.reason;
  },

  /** @param {{ name: string }} input */
  async versioned({ name }) {
    const options = { attemptsMax: 100_000, promoteAfter: 3, waitMs: Infinity };
    const { value, version } = await versioned(holdfast, name).update((old) => Number(old ?? 0) + 1, options);
    return { value, version };
  },

  /** @param {{ name: string }} input */
  counter: ({ name }) => counter(holdfast, name).take(1, { requestId: `order:${process.pid}` }),

  /** @param {{ name: string }} input */
  async keyed({ name }) {
    const work = (/** @type {import("holdfast").Lease} */ { owner }) => visit(name, owner);
    const { outcome } = await keyed(holdfast, "test").run(name, work, { leaseMs, waitMs: Infinity });
    return outcome;
  },

  /** Writes with a token that was granted earlier. @param {{ name: string, token: number }} input */
  async fence({ name, token }) {
    try {
      await fencedSet(redis, { key: `${name}:data`, value: String(token), lease: { name, token } });
      return "written";
    } catch (error) {
      if (!(error instanceof StaleTokenError)) throw error;
      return error.seen;
    }
  },

  /** @param {{ name: string, count: number }} input */
  async slot({ name, count }) {
    try {
      slot = await workerSlot(holdfast, name, { count, leaseMs, waitMs: 0 });
      return slot.number;
    } catch (error) {
      if (!(error instanceof SlotsTakenError)) throw error;
      return undefined;
    }
  },

  /** @param {{ name: string, mode: "newest" | "join" }} input */
  async coalesce({ name, mode }) {
    const payload = await redis.incr(`${name}:calls`);
    const work = async () => {
      const begun = Number(await redis.get(`${name}:calls`));
      await visit(name, String(begun));
      return { payload, begun };
    };
    return await coalesce(holdfast, name, work, { mode, leaseMs });
  },

  /** @param {{ name: string }} input */
  async cache({ name }) {
    const load = async () => {
      await visit(name, "", 200);
      return process.pid;
    };
    return await cache(holdfast, "user", { leaseMs }).get(name, load, { waitMs: 600_000 });
  },
};

serve({
  /** Resolves when the client is connected. */
  ready: () => redis.ping(),

  /** Calls the recipe at `atMs`, or immediately if that has passed. @param {{ recipe: string, atMs: number }} input */
  async call({ recipe, atMs, ...input }) {
    await sleep(Math.max(0, atMs - Date.now()));
    return await calls[recipe]?.(input);
  },

  /** Acquires the mutex and returns its token. @param {{ name: string }} input */
  token: ({ name }) => holdfast.mutex(name).run(({ token }) => token, { waitMs: Infinity, leaseMs }),

  /** @param {{ name: string }} input */
  role: ({ name }) => holdfast.election(name).health(0).role,

  /** @param {{ name: string }} input */
  resign: ({ name }) => holdfast.election(name).resign(),

  giveBack: () => slot?.release(),
});
