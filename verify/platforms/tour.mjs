// @ts-check
/**
 * A tour of the built library for runtimes on which vitest does not run: each kind once on ioredis, node-redis and embedded, and the
 * embedded store in a worker.
 *
 * It starts the server of HOLDFAST_REDIS_SERVER. The last line is `N passed, N failed`.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

import { embedded, Keyspace } from "@holdfast/embedded";
import { AcquireTimeoutError, createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { createClient } from "redis";

/** @typedef {import("holdfast").Holdfast} Holdfast */

/** Longest time for one check, in ms. */
const CHECK_MS = 30_000;
const PATIENT = { waitMs: 20_000 };

/**
 * Each check gets two instances on one server, and a name of its own.
 *
 * @type {Record<string, (first: Holdfast, second: Holdfast, name: string) => Promise<void>>}
 */
const CHECKS = {
  async "a mutex is handed to its waiter, with a higher token"(first, second, name) {
    const lease = await first.mutex(name).acquire();
    const next = second.mutex(name).acquire(PATIENT);
    await until(async () => (await first.mutex(name).inspect()).waiterCount === 1);
    await lease.release();
    const handed = await next;
    expect(handed.token > lease.token);
    await handed.release();
  },
  async "a mutex that is held is refused"(first, second, name) {
    const lease = await first.mutex(name).acquire();
    expect((await second.mutex(name).tryAcquire()) === null);
    const error = await second
      .mutex(name)
      .acquire({ waitMs: 50 })
      .catch((/** @type {unknown} */ reason) => reason);
    expect(error instanceof AcquireTimeoutError);
    await lease.release();
  },
  async "a lease that is not renewed expires and aborts its signal"(first, second, name) {
    const lease = await first.mutex(name).acquire({ leaseMs: 300, renew: false });
    await (await second.mutex(name).acquire(PATIENT)).release();
    await until(async () => lease.signal.aborted);
  },
  async "a lease is renewed"(first, second, name) {
    const isKept = async (/** @type {number} */ leaseMs) => {
      const lease = await first.mutex(name).acquire({ leaseMs, ...PATIENT });
      await new Promise((resolve) => setTimeout(resolve, 2.5 * leaseMs));
      const other = await second.mutex(name).tryAcquire();
      await other?.release();
      await lease.release().catch(() => {});
      return other === null && !lease.signal.aborted;
    };
    // A process that stands still for a lease cannot renew it, so a longer one is tried.
    expect((await isKept(600)) || (await isKept(6_000)));
  },
  async "a reentrant mutex is entered twice in one context"(first, second, name) {
    await first.reentrantMutex(name).run(async () => {
      await first.reentrantMutex(name).run(async () => expect(first.reentrantMutex(name).holdCount === 2));
      expect((await second.reentrantMutex(name).tryAcquire()) === null);
    });
  },
  async "a multi-lock takes all its members"(first, second, name) {
    await first.multiLock([`{${name}}:a`, `{${name}}:b`]).run(async () => {
      expect((await second.mutex(`{${name}}:a`).tryAcquire()) === null);
    });
  },
  async "a semaphore grants its permits and no more"(first, second, name) {
    const [one, two] = [
      await first.semaphore(name, { permits: 2 }).acquire(),
      await second.semaphore(name, { permits: 2 }).acquire(),
    ];
    expect((await first.semaphore(name, { permits: 2 }).tryAcquire()) === null);
    const next = first.semaphore(name, { permits: 2 }).acquire(PATIENT);
    await two.release();
    await (await next).release();
    await one.release();
  },
  async "a read-write lock shares reads and refuses writes beside them"(first, second, name) {
    const [one, two] = [
      await first.readWriteLock(name).read.acquire(),
      await second.readWriteLock(name).read.acquire(),
    ];
    expect((await second.readWriteLock(name).write.tryAcquire()) === null);
    await one.release();
    await two.release();
    await (await second.readWriteLock(name).write.acquire(PATIENT)).release();
  },
  async "a condition notifies its waiter"(first, second, name) {
    const waiting = first
      .mutex(name)
      .condition("ready")
      .wait(await first.mutex(name).acquire(), PATIENT);
    await until(async () => (await second.mutex(name).condition("ready").inspect()).waiterCount === 1);
    await second.mutex(name).run((lease) => second.mutex(name).condition("ready").signal(lease), PATIENT);
    await (await waiting).release();
  },
  async "a count-down latch opens at zero"(first, second, name) {
    await first.countDownLatch(name).trySetCount(1);
    const waiting = second.countDownLatch(name).await(PATIENT);
    await first.countDownLatch(name).countDown(1, { callerId: "a" });
    await waiting;
  },
  async "a barrier lets its parties go together"(first, second, name) {
    await Promise.all([first, second].map((each) => each.barrier(name, { parties: 2 }).arrive(PATIENT)));
  },
  async "an election has one leader, who may resign"(first, second, name) {
    const lease = await first.election(name).campaign("first");
    const next = second.election(name).campaign("second", PATIENT);
    await first.election(name).resign(lease);
    await second.election(name).resign(await next);
  },
  async "a lease moves to another instance"(first, second, name) {
    const lease = await first.mutex(name).acquire();
    await (await second.adopt(lease.export())).release();
    await (await first.mutex(name).acquire(PATIENT)).release();
  },
};

if (isMainThread) await tour();
else await inWorker();

async function tour() {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-tour-"));
  const port = await freePort();
  const flags = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", directory];
  const server = spawn(process.env.HOLDFAST_REDIS_SERVER ?? "redis-server", flags, { stdio: "ignore" });
  let passed = 0;
  let failed = 0;
  /** @param {string} title @param {() => Promise<void>} body */
  const check = async (title, body) => {
    try {
      await within(body());
      passed += 1;
      console.log(`✓ ${title}`);
    } catch (error) {
      failed += 1;
      console.log(`✗ ${title}: ${String(error instanceof Error ? error.message : error).split("\n")[0]}`);
    }
  };
  try {
    const first = new Redis({ port, host: "127.0.0.1" });
    const second = new Redis({ port, host: "127.0.0.1" });
    for (const client of [first, second]) client.on("error", () => {});
    await first.ping();
    const url = `redis://127.0.0.1:${port}`;
    const others = [createClient({ url }), createClient({ url })];
    for (const client of others) await client.on("error", () => {}).connect();
    const keyspace = new Keyspace();
    /** @type {Record<string, Holdfast[]>} */
    const pairs = {
      ioredis: [first, second].map((redis) => createHoldfast({ redis })),
      "node-redis": others.map((redis) => createHoldfast({ redis })),
      embedded: [0, 1].map(() => createHoldfast({ store: embedded({ keyspace }) })),
    };
    for (const [store, [one, two]] of Object.entries(pairs)) {
      if (one === undefined || two === undefined) continue;
      for (const [title, body] of Object.entries(CHECKS)) {
        await check(`${store}: ${title}`, () => body(one, two, `${store}-${title}`));
      }
      await check(`${store}: it closes`, async () => {
        await one.close();
        await two.close();
      });
    }
    await check("embedded: a mutex in a worker", fromWorker);
    for (const client of [first, second]) client.disconnect();
    for (const client of others) client.destroy();
  } finally {
    server.kill();
    rmSync(directory, { recursive: true, force: true });
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}

/** @returns {Promise<void>} */
function fromWorker() {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url));
    worker.once("message", (text) => (text === "locked" ? resolve() : reject(new Error(String(text)))));
    worker.once("error", reject);
  });
}

async function inWorker() {
  try {
    const holdfast = createHoldfast({ store: embedded({ keyspace: new Keyspace() }) });
    await holdfast.mutex("worker").run(() => {});
    await holdfast.close();
    parentPort?.postMessage("locked");
  } catch (error) {
    parentPort?.postMessage(String(error));
  }
}

/** @param {boolean} isTrue */
function expect(isTrue) {
  if (!isTrue) throw new Error("an expectation does not hold");
}

/** @param {() => Promise<boolean>} isTrue */
async function until(isTrue) {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** @param {Promise<void>} work */
async function within(work) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${CHECK_MS} ms`)), CHECK_MS);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** @returns {Promise<number>} a port that is free now */
function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
