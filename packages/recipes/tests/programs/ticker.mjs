// @ts-check
/**
 * One of several instances of a service, each with its own clock. It runs one job on timers with `scheduled` and one of
 * node-cron with its coordinator. It records everything in lists on the server, which survive a crash.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";
import { realMs, setClock } from "./wrong-clock.mjs";

const { port, instance, offsetMs, everyMs, workMs, cron } = args;

setClock(offsetMs);

const { createHoldfast } = await import("holdfast");
const { runCoordinator } = await import("@holdfast/node-cron");
const { scheduled } = await import("@holdfast/recipes");
const { Redis } = await import("ioredis");
const { schedule, setRunCoordinator } = await import("node-cron");

const redis = new Redis({ port });
// Long, because the machine may be slow and no server fails in this test.
const holdfast = createHoldfast({ redis, clientName: instance, commandTimeoutMs: 60_000 });

/** @param {number} ms @param {AbortSignal} [signal] */
const sleep = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });

/** @param {string} list @param {object} entry */
const note = (list, entry) => redis.rpush(list, JSON.stringify({ instance, ...entry }));

/**
 * Number of the call of the job, which its records contain, and its tick in server time. The server fixes the tick when
 * the call arrives, even if the work begins late.
 *
 * @type {AsyncLocalStorage<{ call: number, tick?: number }>}
 */
const asking = new AsyncLocalStorage();
let asked = 0;

subscribe("holdfast:run:skipped", (message) => {
  const { lockName, tick, reason } = /** @type {any} */ (message);
  void note(`skips:${lockName}`, { call: asking.getStore()?.call ?? tick, tick, reason });
});

subscribe("holdfast:run:started", (message) => {
  const call = asking.getStore();
  if (call !== undefined) call.tick = Math.round(Date.parse(/** @type {any} */ (message).tick) / everyMs);
});

const job = scheduled(
  holdfast,
  "job",
  async (lease) => {
    await note("starts:job", { ...asking.getStore(), token: lease.token });
    void tell("job");
    await sleep(Math.random() * workMs, lease.signal);
  },
  { everyMs, history: true, jitterMaxMs: Math.floor(everyMs / 100) },
);

/** The current tick by the clock of this host. */
function nominal() {
  return Math.round(Date.now() / everyMs);
}

/** Like any scheduler, calls the job at whole multiples of the period by its own clock. */
function arm() {
  const nextAtMs = (Math.floor((Date.now() + everyMs / 4) / everyMs) + 1) * everyMs;
  setTimeout(() => {
    asked += 1;
    void note("calls:job", { call: asked, tick: nominal() });
    asking.run({ call: asked }, job).catch((error) => note("errors:job", { error: String(error) }));
    arm();
  }, nextAtMs - Date.now());
}

const coordinator = runCoordinator(holdfast, { history: true, jitterMaxMs: 50 });
/** Maps the time of a fire to its key. @type {Map<string, string>} */
const keys = new Map();
setRunCoordinator({
  ...coordinator,
  shouldRun: async (key, ttlMs) => {
    keys.set(new Date(key.slice(-"2000-01-01T00:00:00.000Z".length)).toISOString(), key);
    await note("calls:node-cron", { call: key, tick: key });
    return await coordinator.shouldRun(key, ttlMs);
  },
  onComplete: (key) => coordinator.onComplete(key),
});

serve({
  async start() {
    arm();
    schedule(
      cron,
      async ({ date }) => {
        const tick = date.toISOString();
        await note("starts:node-cron", { call: keys.get(tick), tick, atMs: realMs() });
        void tell("node-cron");
        await sleep(Math.random() * workMs);
      },
      { name: "feed", distributed: true },
    );
  },
  counts: () => ({ job: job.counts, cron: coordinator.counts }),
});
