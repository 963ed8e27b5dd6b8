/**
 * Bounds how much code a reader must follow from `acquire()` to the server: the library's own stack frames, and the
 * files that run during a contended acquire. If a change lowers a number, lower its bound too.
 */
import { Session } from "node:inspector/promises";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast, type Holdfast } from "../../src/index.js";

const SOURCES = "packages/holdfast/src/";
/** Raising a bound needs a reason in review. */
const MOST_FRAMES = 8;
const MOST_FILES = 29;

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
  holdfast = createHoldfast({ redis });
  // Run once first, because one-time work such as loading the scripts does not count.
  await contended("warm");
});

afterAll(async () => {
  await holdfast.close();
  redis.disconnect();
  await server.stop();
});

/** A caller that waits until a holder releases, extends its lease, and releases it. */
async function contended(name: string): Promise<void> {
  const mutex = holdfast.mutex(name);
  const held = await mutex.acquire({ fairness: "strict" });
  const waiting = mutex.acquire({ fairness: "strict", waitMs: Infinity });
  while ((await server.command("EXISTS", `hf:mutex:{${name}}:queue`)) === 0) await new Promise(setImmediate);
  await held.release();
  const lease = await waiting;
  await lease.extend(10_000);
  await lease.release();
}

test(`an acquire reaches the client library within ${MOST_FRAMES} stack frames of Holdfast`, async () => {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 100;
  const { evalsha } = redis;
  let stack = "";
  redis.evalsha = ((...input: Parameters<typeof evalsha>) => {
    if (stack === "") stack = new Error("sent").stack ?? "";
    return Reflect.apply(evalsha, redis, input);
  }) as typeof evalsha;
  const lease = await holdfast.mutex("frames").acquire();
  Error.stackTraceLimit = limit;
  redis.evalsha = evalsha;
  await lease.release();
  const own = stack.split("\n").filter((line) => line.includes(SOURCES));
  expect(own.length, own.join("\n")).toBeGreaterThan(3);
  expect(own.length, own.join("\n")).toBeLessThanOrEqual(MOST_FRAMES);
});

test(`a contended acquire, its renewal and its release run code of at most ${MOST_FILES} files`, async () => {
  const inspector = new Session();
  inspector.connect();
  await inspector.post("Profiler.enable");
  await inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await inspector.post("Profiler.takePreciseCoverage");
  await contended("files");
  const { result } = await inspector.post("Profiler.takePreciseCoverage");
  inspector.disconnect();
  const files = result
    .filter(({ functions }) =>
      functions.some(({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0),
    )
    .flatMap(({ url }) => (url.includes(SOURCES) ? [url.slice(url.indexOf(SOURCES) + SOURCES.length)] : []));
  const distinct = [...new Set(files)].sort();
  expect(distinct.length, distinct.join("\n")).toBeGreaterThan(10);
  expect(distinct.length, distinct.join("\n")).toBeLessThanOrEqual(MOST_FILES);
});
