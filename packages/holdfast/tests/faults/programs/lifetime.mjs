// @ts-check
/**
 * A process that uses a lock once and then has nothing more to do. The test checks whether and when it exits by itself.
 * Prints one JSON line for each step.
 */
import process from "node:process";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { createClient } from "redis";

const { library, scenario, port, name, waitMs, leaseMs } = JSON.parse(process.argv[2] ?? "{}");

/** @param {object} step */
function print(step) {
  process.stdout.write(`${JSON.stringify(step)}\n`);
}

/** @returns {Promise<{ redis: any, disconnect(): void, unref(): void, shutdown(): Promise<unknown> }>} */
async function connect() {
  if (library === "ioredis") {
    const redis = new Redis({ port });
    await new Promise((resolve) => redis.once("ready", resolve));
    return {
      redis,
      disconnect: () => redis.disconnect(),
      unref: () => redis.stream.unref(),
      shutdown: () => redis.shutdown("NOSAVE"),
    };
  }
  const redis = createClient({ socket: { host: "127.0.0.1", port } });
  await redis.connect();
  return {
    redis,
    disconnect: () => redis.destroy(),
    unref: () => redis.unref(),
    shutdown: () => redis.sendCommand(["SHUTDOWN", "NOSAVE"]),
  };
}

/** Resources, other than the standard streams, that keep the process alive. */
function resources() {
  return process
    .getActiveResourcesInfo()
    .filter((resource) => resource !== "PipeWrap")
    .sort();
}

const { redis, disconnect, unref, shutdown } = await connect();
const before = resources();
const holdfast = createHoldfast({ redis });
const mutex = holdfast.mutex(name);

if (scenario === "released") {
  await mutex.run(() => {});
  disconnect();
} else if (scenario === "held") {
  const lease = await mutex.acquire({ leaseMs });
  print({ owner: lease.owner });
  disconnect();
} else if (scenario === "waiting") {
  // Only the wait itself keeps the process alive.
  unref();
  const startedAtMs = performance.now();
  await mutex
    .acquire({ waitMs })
    .catch((error) => print({ error: error.name, afterMs: performance.now() - startedAtMs }));
} else if (scenario === "closed") {
  const lease = await mutex.acquire({ leaseMs });
  const waiting = Array.from({ length: 20 }, () => mutex.acquire({ waitMs }).catch((error) => error.name));
  const other = holdfast.mutex(`other:${name}`);
  await other.run(() => {});
  await holdfast.close();
  // Closing a connection takes the client library and the kernel a few event loop turns.
  const giveUpAtMs = performance.now() + 3_000;
  while (String(resources()) !== String(before) && performance.now() < giveUpAtMs) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  print({ before, after: resources(), waits: await Promise.all(waiting), isAborted: lease.signal.aborted });
  disconnect();
}
if (scenario === "down") {
  const lease = await mutex.acquire({ leaseMs });
  const waiting = mutex.acquire({ waitMs }).catch((error) => error.name);
  await new Promise((resolve) => setTimeout(resolve, 50));
  redis.on("error", () => {});
  shutdown().catch(() => {});
  while (library === "ioredis" ? redis.status !== "reconnecting" : redis.isReady) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  disconnect();
  print({ wait: await waiting, isAborted: lease.signal.aborted });
}
process.on("exit", () => print({ left: "by itself" }));
