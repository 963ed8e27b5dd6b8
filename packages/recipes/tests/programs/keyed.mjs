// @ts-check
/** A receiver of webhooks in a separate process. */

import { keyed } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
// Long, because many simultaneous requests are slow on a slow machine, and retries do not help.
const holdfast = createHoldfast({ redis, commandTimeoutMs: 30_000 });
const objects = keyed(holdfast, "test");

/** @type {() => void} */
let finish = () => {};
const finished = new Promise((resolve) => {
  finish = () => resolve(undefined);
});

/** @param {string} mark @param {string} object */
const applied = (mark, object) => redis.rpush(`${object}:applied`, mark);

serve({
  /** Opens the inbox, so that later calls can receive messages. @param {{ object: string }} input */
  async ready({ object }) {
    await Promise.all([1, 2].map(() => objects.run(object, () => redis.ping())));
  },

  /**
   * Applies one event: reports that it has begun, and works until `finish` is called.
   *
   * @param {{ object: string, mark: string, leaseMs: number, eventId?: string }} input
   */
  async apply({ object, mark, leaseMs, eventId }) {
    try {
      return await objects.run(
        object,
        async () => {
          await tell("began");
          await finished;
          await applied(mark, object);
          return mark;
        },
        { leaseMs, waitMs: 600_000, ...(eventId === undefined ? {} : { eventId }) },
      );
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return { error: error.name, value: "value" in error ? error.value : undefined };
    }
  },

  finish: () => finish(),

  /**
   * Delivers `events` events of each object, `atOnce` of them at a time. Each records its owner.
   *
   * @param {{ objects: string[], events: number, atOnce: number }} input
   * @returns {Promise<Record<string, number>>} how often each outcome occurred
   */
  async deliver({ objects: all, events, atOnce }) {
    /** @type {Record<string, number>} */
    const outcomes = {};
    /** @param {string} object @param {number} first */
    const some = async (object, first) => {
      for (let event = first; event < events; event += atOnce) {
        const { outcome } = await objects.run(object, ({ owner }) => redis.rpush(`${object}:turns`, owner), {
          eventId: `${process.pid}:${event}`,
          waitMs: Infinity,
          waitersMax: events,
          leaseMs: 120_000,
        });
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      }
    };
    await Promise.all(all.flatMap((object) => Array.from({ length: atOnce }, (_, first) => some(object, first))));
    return outcomes;
  },
});
