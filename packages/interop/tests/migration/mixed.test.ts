/**
 * The mixed deployment of each page in docs/migrate: workers of the old library and of Holdfast increment one counter that
 * only their lock protects. No two workers hold the lock at the same time, and no update is lost.
 *
 * A run ends after a number of sections; with HOLDFAST_MIGRATION_SECONDS=30, each row runs for that long.
 */
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { env } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { redisson } from "@holdfast/interop/redisson";
import { phpSetGet, timestampLock } from "@holdfast/interop/timestamp";
import Redlock from "@holdfast/redlock-compat";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { JavaModel } from "../redisson/java-model.js";
import {
  AdvisoryLocks,
  phpTimestamp,
  redisSemaphore,
  redissonJava,
  redlock,
  shedlock,
  type TryLock,
  verrou,
} from "./old-libraries.js";

const PAGES = fileURLToPath(new URL("../../../../docs/migrate/", import.meta.url));
const SECONDS = Number(env.HOLDFAST_MIGRATION_SECONDS ?? 0);
/** Sections of each worker in a short run. */
const SECTIONS = 15;
/** Longer than any test. */
const NEVER_MS = 600_000;

let server: RedisServer;
let theirs: Redis;
let ours: Redis;
let java: JavaModel;
let holdfast: Holdfast;

beforeAll(async () => {
  server = await startRedis();
  theirs = new Redis({ port: server.port });
  ours = new Redis({ port: server.port });
  java = new JavaModel({ port: server.port, watchdogMs: 30_000 });
  holdfast = createHoldfast({ redis: ours });
});

afterAll(async () => {
  await holdfast?.close();
  await java?.close();
  theirs?.disconnect();
  ours?.disconnect();
  await server?.stop();
});

/** Both sides of a migration, on one name. */
interface Mixed {
  readonly old: TryLock;
  /** Runs the work under the new lock. */
  readonly renewed: (work: () => Promise<void>) => Promise<void>;
}

const advisory = new AdvisoryLocks();

/** The migrations by page. */
const MIGRATIONS: Readonly<Record<string, (name: string) => Mixed>> = {
  redlock(name) {
    const dropIn = new Redlock([ours], { retryCount: -1, retryDelay: 20, retryJitter: 10 });
    return { old: redlock(theirs, name), renewed: (work) => dropIn.using([name], 30_000, work) };
  },
  "redis-semaphore": (name) => onKey(redisSemaphore(theirs, name), name, `mutex:${name}`),
  verrou: (name) => onKey(verrou(theirs, name), name, name),
  redisson(name) {
    const lock = redisson(holdfast).lock(name);
    return { old: redissonJava(java, name), renewed: (work) => lock.run(work, { waitMs: NEVER_MS }) };
  },
  shedlock: (name) => onKey(shedlock(theirs, name), name, `job-lock:default:${name}`),
  "setnx-timestamp"(name) {
    const lock = timestampLock(holdfast, name, phpSetGet, { retryDelayMs: 20, overwritten: "delete" });
    return { old: phpTimestamp(theirs, lock.key), renewed: (work) => lock.run(work, { waitMs: NEVER_MS }) };
  },
  "postgres-advisory-locks"(name) {
    const key = 42;
    const mutex = holdfast.mutex(name);
    return {
      old: async () => (advisory.tryLock(key) ? async () => advisory.unlock(key) : undefined),
      // The second step of the page: the mutex first, then the lock that old services have.
      renewed: (work) =>
        mutex.run(
          async () => {
            await advisory.lock(key);
            try {
              await work();
            } finally {
              advisory.unlock(key);
            }
          },
          { waitMs: NEVER_MS },
        ),
    };
  },
};

/** A mutex of Holdfast on the old library's key. */
function onKey(old: TryLock, name: string, key: string): Mixed {
  const mutex = holdfast.mutex(name, { key, recheckMs: 20 });
  return { old, renewed: (work) => mutex.run(work, { waitMs: NEVER_MS }) };
}

test.each(Object.entries(MIGRATIONS))(
  "%s: the old library and Holdfast exclude each other, and no update is lost",
  async (page, migration) => {
    const id = randomUUID();
    const { old, renewed } = migration(id);
    const counter = `counter:${id}`;
    const endsAtMs = performance.now() + SECONDS * 1_000;
    let inside = 0;
    const overlaps: string[] = [];
    const done = { old: 0, renewed: 0 };

    const section = async (side: "old" | "renewed"): Promise<void> => {
      inside += 1;
      if (inside > 1) overlaps.push(side);
      await theirs.set(counter, Number(await theirs.get(counter)) + 1);
      done[side] += 1;
      inside -= 1;
    };
    const work = async (once: () => Promise<boolean>): Promise<void> => {
      for (let count = 0; count < SECTIONS || performance.now() < endsAtMs; ) {
        if (await once()) count += 1;
        await sleep(Math.random() * 8);
      }
    };
    const oldWorker = work(async () => {
      const release = await old();
      if (release === undefined) return false;
      await section("old");
      await release();
      return true;
    });
    const newWorker = (): Promise<void> =>
      work(async () => {
        await renewed(() => section("renewed"));
        return true;
      });
    await Promise.all([oldWorker, newWorker(), newWorker()]);

    expect(overlaps).toEqual([]);
    expect(done.old).toBeGreaterThanOrEqual(SECTIONS);
    expect(done.renewed).toBeGreaterThanOrEqual(2 * SECTIONS);
    expect(Number(await theirs.get(counter))).toBe(done.old + done.renewed);
    if (SECONDS > 0) console.log(`sections: ${page}: old ${done.old}, new ${done.renewed}`);
  },
  (SECONDS + 90) * 1_000,
);

test("each page of docs/migrate has a mixed deployment here, names it, and has at most 500 words", () => {
  const pages = readdirSync(PAGES).filter((file) => file !== "index.md");
  expect(pages.map((file) => file.replace(/\.md$/, "")).toSorted()).toEqual(Object.keys(MIGRATIONS).toSorted());
  const index = readFileSync(`${PAGES}index.md`, "utf8");
  for (const file of pages) {
    const text = readFileSync(`${PAGES}${file}`, "utf8");
    expect(index, file).toContain(`](${file})`);
    expect(text.split(/\s+/).length, file).toBeLessThanOrEqual(500);
    expect(text, file).toContain("packages/interop/tests/migration/mixed.test.ts");
    for (const heading of ["## Calls", "## Both at the same time", "## Switch", "## Go back"]) {
      expect(text, file).toContain(heading);
    }
  }
  expect(existsSync(`${PAGES}index.md`)).toBe(true);
});
