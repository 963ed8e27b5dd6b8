/** Two processes with the Web Locks interface, on a real server. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type Program, startProgram } from "../../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast, type Holdfast } from "../../src/index.js";
import { until } from "../../src/testing/delays.js";

interface Granted {
  readonly token: number;
  readonly clientId: string;
}

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let programs: Program[] = [];
let name: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis });
});
beforeEach(() => {
  name = `web:${randomUUID()}`;
});
afterEach(async () => {
  await Promise.all(programs.map((program) => program.kill()));
  programs = [];
});
afterAll(async () => {
  await holdfast.close();
  redis.disconnect();
  await server.stop();
});

/** Starts two processes. */
async function tabs(leaseMs = 30_000): Promise<[Program, Program]> {
  const start = (): Program => {
    const program = startProgram(new URL("./programs/tab.mjs", import.meta.url), { port: server.port, name, leaseMs });
    programs.push(program);
    return program;
  };
  const both: [Program, Program] = [start(), start()];
  await Promise.all(both.map((program) => program.call("ready")));
  return both;
}

function queued(count: number): Promise<void> {
  const { read } = holdfast.readWriteLock(name);
  return until(async () => (await read.inspect()).waiterCount === count, `${count} in the queue`);
}

test("exclusive: two processes that increment one counter lose no increment", async () => {
  const both = await tabs();
  await Promise.all(both.map((program) => program.call("count", { times: 50 })));
  expect(await redis.get("counter")).toBe("100");
});

test("shared: two processes hold the lock together, and an exclusive request waits for both", async () => {
  const [one, two] = await tabs();
  const shared = [
    await one.call<Granted>("hold", { mode: "shared" }),
    await two.call<Granted>("hold", { mode: "shared" }),
  ];
  const writing = holdfast.readWriteLock(name).write.acquire({ waitMs: Infinity });
  await queued(1);
  await one.call("release");
  expect(await one.call("outcome")).toBe("released");
  expect((await holdfast.readWriteLock(name).read.inspect()).holders).toHaveLength(1);
  await two.call("release");
  const writer = await writing;
  expect(writer.token).toBeGreaterThan(Math.max(...shared.map(({ token }) => token)));
  await writer.release();
});

test("steal: the process that held the lock gets AbortError, and the waiters come after the stealer", async () => {
  const [one, two] = await tabs();
  const held = await one.call<Granted>("hold");
  const reading = holdfast.readWriteLock(name).read.acquire({ waitMs: Infinity });
  await queued(1);
  const stolen = await two.call<Granted>("hold", { steal: true });
  expect(stolen.token).toBeGreaterThan(held.token);
  expect(await one.call("outcome")).toBe("AbortError");
  expect((await holdfast.readWriteLock(name).read.inspect()).waiterCount).toBe(1);
  await two.call("release");
  expect(await two.call("outcome")).toBe("released");
  const reader = await reading;
  expect(reader.token).toBeGreaterThan(stolen.token);
  await reader.release();
});

test("signal: an abort in one process ends its wait for the lock of the other", async () => {
  const [one, two] = await tabs();
  await one.call("hold");
  const waiting = two.call("wait");
  await queued(1);
  await two.call("abort");
  expect(await waiting).toBe("aborted by the user");
  await queued(0);
  await one.call("release");
  expect(await one.call("outcome")).toBe("released");
});

test("query: each process sees the locks of both", async () => {
  const [one, two] = await tabs();
  const { clientId } = await one.call<Granted>("hold");
  const waiting = two.call("wait");
  await queued(1);
  const [seen, other] = [await one.call<Seen>("query"), await two.call<Seen>("query")];
  expect(seen.held).toContainEqual({ name, mode: "exclusive", clientId });
  const [pending] = seen.pending.filter((info) => info.name === name);
  expect(pending).toMatchObject({ name, mode: "exclusive" });
  expect(pending?.clientId).not.toBe(clientId);
  expect(other).toEqual(seen);
  await one.call("release");
  expect(await waiting).toBe("granted");
});

test("a process that is killed loses its lock when its lease ends", async () => {
  const [one, two] = await tabs(1_000);
  await one.call("hold");
  const waiting = two.call("wait");
  await one.kill();
  expect(await waiting).toBe("granted");
});

interface Seen {
  readonly held: readonly object[];
  readonly pending: readonly { readonly name: string; readonly clientId: string }[];
}
