/** A quorum server that restarts without its memory: K4 and R11 of README.md in this folder. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import {
  AcquireTimeoutError,
  createHoldfast,
  type Holdfast,
  type HoldfastOptions,
  QuorumError,
  type Redlock,
} from "../../src/index.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS, until } from "../../src/testing/delays.js";

// A server restarts within this time, which can be slow on a busy machine.
const LEASE_MS = 4_000;
const LONG_LEASE_MS = 60_000;
const BRIEF_MS = 1_000;
let servers: RedisServer[];
let clients: Redis[];
const holdfasts: Holdfast[] = [];

beforeAll(async () => {
  servers = await Promise.all(Array.from({ length: 3 }, () => startRedis()));
  clients = servers.map(({ port }) => {
    const client = new Redis({ port, retryStrategy: () => 50 });
    client.on("error", () => {});
    return client;
  });
});
afterAll(async () => {
  await Promise.all(holdfasts.map((holdfast) => holdfast.close()));
  for (const client of clients ?? []) client.disconnect();
  await Promise.all((servers ?? []).map((server) => server.stop()));
});

function connect(options: HoldfastOptions): Holdfast {
  const holdfast = createHoldfast({ leaseMs: LEASE_MS, ...options });
  holdfasts.push(holdfast);
  return holdfast;
}

/**
 * A holder has servers 0 and 1, server 1 loses its memory, and another client tries servers 1 and 2. Returns the number
 * of holders after that.
 */
async function holdersAfterMemoryLoss(options: () => HoldfastOptions, name: string): Promise<number> {
  const [zero, one, two] = servers as [RedisServer, RedisServer, RedisServer];
  const first = connect(options()).redlock(name);
  const second = connect(options()).redlock(name);
  // Waits until the servers' first-use checks are over.
  await second.run(() => {}, { waitMs: LONG_MS });
  two.freeze();
  // With renewal, a slow machine would renew before the end and find that a majority has forgotten the lease.
  const lease = await first.acquire({ waitMs: LONG_MS, renew: false });
  two.resume();
  await until(async () => (await two.command("GET", `hf:redlock:{${name}}`)) !== null, "the straggler to grant");
  await two.command("DEL", `hf:redlock:{${name}}`);
  await one.restart();
  await until(() => clients.every(({ status }) => status === "ready"), "the client to connect again");
  zero.freeze();
  const rival = await second.tryAcquire().catch(() => null);
  zero.resume();
  const holders = [lease, rival].filter((held) => held !== null && held.validForMs() > 0).length;
  await rival?.release();
  await lease.release().catch(() => {});
  return holders;
}

test("a restarted server grants nothing for the longest lease, so a held lock is not granted again", async () => {
  expect(await holdersAfterMemoryLoss(() => ({ redlock: clients }), "guarded")).toBe(1);
  await connect({ redlock: clients })
    .redlock("guarded")
    .run(() => {}, { waitMs: LONG_MS });
});

test("without the failover guard, the same restart makes two holders", async () => {
  const unguarded = (): HoldfastOptions => ({ redlock: clients.map((client) => storeFor(client)) });
  expect(await holdersAfterMemoryLoss(unguarded, "unguarded")).toBe(2);
});

/** Waits until each server has been checked and may grant. */
async function settled(holdfast: Holdfast): Promise<void> {
  const mayGrant = async (server: RedisServer): Promise<boolean> => {
    const [run, pending] = (await server.command("HMGET", "hf:lineage", "run", "pending")) as (string | null)[];
    return run !== null && pending === null;
  };
  await until(async () => {
    await holdfast.redlock("settling").run(() => {}, { waitMs: LONG_MS });
    return (await Promise.all(servers.map(mayGrant))).every(Boolean);
  }, "all servers to grant");
}

test("a server that forgot an unusually long lease grants nothing while that lease is held", async () => {
  const [zero, one, two] = servers as [RedisServer, RedisServer, RedisServer];
  const brief = connect({ redlock: clients, leaseMs: BRIEF_MS });
  await settled(brief);
  const second = brief.redlock("long");
  two.freeze();
  const lease = await connect({ redlock: clients })
    .redlock("long")
    .acquire({ leaseMs: LONG_LEASE_MS, waitMs: LONG_MS, renew: false });
  two.resume();
  await until(async () => (await two.command("GET", "hf:redlock:{long}")) !== null, "the straggler to grant");
  await two.command("DEL", "hf:redlock:{long}");
  await one.restart();
  await until(() => clients.every(({ status }) => status === "ready"), "the client to connect again");
  // The only remaining server that granted the lease cannot be asked.
  zero.freeze();
  expect(await refusal(second)).toBeInstanceOf(QuorumError);
  zero.resume();
  expect(await refusal(second)).toBeInstanceOf(AcquireTimeoutError);
  expect(lease.validForMs()).toBeGreaterThan(0);
  await lease.release().catch(() => {});
  await second.run(() => {}, { waitMs: LONG_MS });
});

/** The error of an acquire that waits longer than its own lease. */
async function refusal(lock: Redlock): Promise<unknown> {
  return lock.acquire({ waitMs: 4 * BRIEF_MS }).catch((error: unknown) => error);
}
