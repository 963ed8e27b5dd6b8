// @ts-check
/** A service that uses every integration, in its own process. Processes start a call at the time that the test sets. */

import { withLock } from "@holdfast/bullmq";
import { HoldfastModule, Leading, Locked, Scheduled } from "@holdfast/nestjs";
import { runCoordinator } from "@holdfast/node-cron";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Worker } from "bullmq";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { schedule } from "node-cron";
import { aborted, args, serve } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const jobs = new Redis({ port: args.port, maxRetriesPerRequest: null });
// Many concurrent requests take long on a slow machine, and retries would only add load.
const options = { redis, commandTimeoutMs: 60_000 };
const holdfast = createHoldfast(options);
/** Longer than any test, so that a caller that waits for a lease to expire makes the test fail. */
const leaseMs = 600_000;
/** Cleanups for the end of the test. @type {(() => unknown)[]} */
const closing = [];

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Records the start and end of the work in Redis, which orders those of all processes. @param {string} name */
async function visit(name, mark = "") {
  await redis.rpush(`${name}:visits`, `begin ${mark}`);
  await sleep(1);
  await redis.rpush(`${name}:visits`, `end ${mark}`);
}

/**
 * Starts a Nest application with one method, decorated like TypeScript's `experimentalDecorators` does it.
 *
 * @param {any} decorator
 * @param {(...args: any[]) => Promise<unknown>} run
 */
async function application(decorator, run) {
  class Service {
    /** @param {any[]} given */
    async run(...given) {
      return await run(...given);
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Service.prototype, "run");
  Object.defineProperty(Service.prototype, "run", decorator(Service.prototype, "run", descriptor) ?? descriptor);
  Injectable()(Service);
  class App {}
  Module({ imports: [HoldfastModule.forRoot(options)], providers: [Service] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  closing.push(() => app.close());
  return app.get(Service);
}

/** @type {{ run(...given: unknown[]): Promise<unknown> }} */
let service;
/** @type {import("@holdfast/node-cron").RedisRunCoordinator} */
let coordinator;

serve({
  /** Resolves when the client is connected. */
  ready: () => redis.ping(),

  /** @param {{ name: string }} input */
  work({ name }) {
    const run = withLock(
      holdfast,
      () => name,
      (job) => visit(name, job.id),
      { leaseMs, whenBusy: { delayMs: 50 } },
    );
    const worker = new Worker(name, run, { connection: /** @type {any} */ (jobs) });
    worker.on("error", () => {});
    closing.push(() => worker.close());
  },

  /**
   * Returns whether this process runs each of these fires.
   *
   * @param {{ name: string, keys: string[], atMs: number }} input
   */
  async fire({ name, keys, atMs }) {
    coordinator = runCoordinator(holdfast, { name });
    await sleep(atMs - Date.now());
    return await Promise.all(keys.map((key) => coordinator.shouldRun(key, 600_000)));
  },

  /** @param {{ keys: string[] }} input */
  complete: ({ keys }) => Promise.all(keys.map((key) => coordinator.onComplete(key))),

  /** Lets node-cron fire every second. @param {{ name: string }} input */
  schedule({ name }) {
    const task = schedule("* * * * * *", ({ date }) => redis.rpush(`${name}:runs`, date.toISOString()), {
      name: "feed",
      distributed: true,
      runCoordinator: runCoordinator(holdfast, { name }),
      logger: { info() {}, warn() {}, error() {}, debug() {} },
    });
    task.on("execution:skipped", ({ reason }) => void redis.hincrby(`${name}:reasons`, reason ?? "", 1));
    closing.push(() => task.destroy());
  },

  /** @param {{ name: string }} input */
  async locked({ name }) {
    const decorator = Locked({ name, leaseMs, waitMs: Infinity, leaseAt: 0 });
    service = await application(decorator, ({ owner }) => visit(name, owner));
  },

  /** @param {{ name: string }} input */
  async scheduled({ name }) {
    const decorator = Scheduled(name, { everyMs: 86_400_000, leaseMs, noLease: true });
    service = await application(decorator, () => visit(name));
  },

  /** Calls the method at that time and returns its result. @param {{ atMs: number }} input */
  async call({ atMs }) {
    await sleep(atMs - Date.now());
    return await service.run();
  },

  /**
   * Leads briefly again and again. In the last term it leads until its signal aborts.
   *
   * @param {{ name: string, terms: number }} input
   */
  async lead({ name, terms }) {
    /** @param {import("holdfast").Leadership} lease */
    const run = async ({ term, signal }) => {
      await redis.rpush(`${name}:visits`, `begin ${term}`);
      if ((await redis.incr(`${name}:terms`)) >= terms) {
        await aborted(signal);
      }
      await redis.rpush(`${name}:visits`, `end ${term}`);
    };
    await application(Leading(name, { delayMaxMs: 0, leaseMs, leaseAt: 0 }), run);
  },

  async close() {
    for (const close of closing.splice(0)) await close();
  },
});
