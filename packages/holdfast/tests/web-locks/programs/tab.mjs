// @ts-check
/** A process that requests locks, as a tab of a browser does. */
import { createHoldfast } from "holdfast";
import { lockManager } from "holdfast/web-locks";
import { Redis } from "ioredis";
import { args, serve } from "../../faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const holdfast = createHoldfast({ redis, leaseMs: args.leaseMs });
const locks = lockManager(holdfast);
const controller = new AbortController();
/** @type {(value: string) => void} */
let release = () => {};
/** @type {Promise<unknown>} */
let outcome = Promise.resolve();

serve({
  /** Resolves as soon as the process runs. */
  ready() {},

  /** Requests the lock; resolves with the token and the client id when it is granted. */
  hold: (/** @type {import("holdfast/web-locks").WebLockOptions} */ options) =>
    new Promise((resolve, reject) => {
      outcome = locks.request(args.name, options, (_, lease) => {
        resolve({ token: lease?.token, clientId: lease?.owner.split("/")[0] });
        return new Promise((end) => {
          release = end;
        });
      });
      outcome.catch(reject);
    }),

  /** Lets the callback of `hold` end. */
  release: () => release("released"),

  /** How the request of `hold` ended: its result, or the name of its error. */
  outcome: () => outcome.catch(({ name }) => name),

  /** Requests the lock with a signal; resolves with the reason if it was aborted. */
  wait: () => locks.request(args.name, { signal: controller.signal }, () => "granted").catch((reason) => reason),

  abort: () => controller.abort("aborted by the user"),

  /** Counts without atomic commands, so that only the lock keeps the count right. @param {{ times: number }} input */
  async count({ times }) {
    for (let i = 0; i < times; i += 1) {
      await locks.request(args.name, async () => {
        const before = Number(await redis.get("counter"));
        await redis.set("counter", before + 1);
      });
    }
  },

  query: () => locks.query(),
});
