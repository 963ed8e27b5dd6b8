// @ts-check
/** A service that uses every integration, in a process of its own; each call comes at the moment that the test names, with those of other processes. */
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Worker } from "bullmq";
import { createHoldfast } from "holdfast";
import { withLock } from "holdfast/bullmq";
import { HoldfastModule, Leading, Locked, Scheduled } from "holdfast/nestjs";
import { runCoordinator } from "holdfast/node-cron";
import { Redis } from "ioredis";
import { schedule } from "node-cron";
import { aborted, args, serve } from "../../faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });
const jobs = new Redis({ port: args.port, maxRetriesPerRequest: null });
// On a machine that is slow many requests at once take their time, and asking again does not help.
const options = { redis, commandTimeoutMs: 60_000 };
const holdfast = createHoldfast(options);
/** Longer than any test: whoever waits for a lease to end is seen. */
const leaseMs = 600_000;
/** What ends with the test. @type {(() => unknown)[]} */
const closing = [];

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Notes the begin and the end of the work at the server, which puts those of all processes in order. @param {string} name */
async function visit(name, mark = "") {
  await redis.rpush(`${name}:visits`, `begin ${mark}`);
  await sleep(1);
  await redis.rpush(`${name}:visits`, `end ${mark}`);
}

/**
 * An application of Nest with one method, decorated as TypeScript's `experimentalDecorators` do it.
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
/** @type {import("holdfast/node-cron").RedisRunCoordinator} */
let coordinator;

serve({
  /** Has its connection. */
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

  /** Whether it runs each of those fires. @param {{ name: string, keys: string[], atMs: number }} input */
  async fire({ name, keys, atMs }) {
    coordinator = runCoordinator(holdfast, { name });
    await sleep(atMs - Date.now());
    return await Promise.all(keys.map((key) => coordinator.shouldRun(key, 600_000)));
  },

  /** @param {{ keys: string[] }} input */
  complete: ({ keys }) => Promise.all(keys.map((key) => coordinator.onComplete(key))),

  /** The library itself fires each second. @param {{ name: string }} input */
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

  /** What the method comes to, called at that moment. @param {{ atMs: number }} input */
  async call({ atMs }) {
    await sleep(atMs - Date.now());
    return await service.run();
  },

  /** Leads for a moment, again and again; and for as long as it may, if that is the term. @param {{ name: string, terms: number }} input */
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
