/**
 * A server that becomes master a second time without a restart still has the scripts from the first time. Requests that
 * a client library queued while there was no master once ran before the failover check.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { type Switchboard, startSwitchboard } from "../../../../tests/support/switchboard.js";
import { createHoldfast, type Holdfast } from "../../src/index.js";
import { LONG_MS, until } from "../../src/testing/delays.js";

const LEASE_MS = 1_500;
let one: RedisServer;
let other: RedisServer;
let front: Switchboard;
const clients: Redis[] = [];
const holdfasts: Holdfast[] = [];

beforeAll(async () => {
  const args = ["--repl-diskless-sync-delay", "0"];
  one = await startRedis({ args });
  other = await startRedis({ args: [...args, "--replicaof", "127.0.0.1", `${one.port}`] });
  front = await startSwitchboard(one.port);
  await following(other);
});
afterAll(async () => {
  await Promise.allSettled(holdfasts.map((holdfast) => holdfast.close()));
  for (const client of clients) client.disconnect();
  await Promise.all([front?.close(), one?.stop(), other?.stop()]);
});

async function following(replica: RedisServer): Promise<void> {
  await until(
    async () => String(await replica.command("INFO", "replication")).includes("master_link_status:up"),
    "the replica to follow",
  );
}

function connect(): { readonly client: Redis; readonly holdfast: Holdfast } {
  const client = new Redis({ port: front.port, retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on("error", () => {});
  const holdfast = createHoldfast({ redis: client, leaseMs: LEASE_MS });
  clients.push(client);
  holdfasts.push(holdfast);
  return { client, holdfast };
}

test("a server that becomes master again does not grant a held lock to a queued request", async () => {
  const holder = connect();
  const rival = connect();
  const name = "again";
  await holder.holdfast.mutex(name).run(() => {});
  await rival.holdfast.mutex(name).run(() => {});

  front.switchTo(undefined);
  await other.command("REPLICAOF", "NO", "ONE");
  await one.command("REPLICAOF", "127.0.0.1", other.port);
  front.switchTo(other.port);
  await following(one);
  await rival.holdfast.mutex(name).run(() => {}, { waitMs: LONG_MS });

  // From here on, the first server receives no replication.
  await one.command("REPLICAOF", "127.0.0.1", 1);
  const lease = await holder.holdfast.mutex(name).acquire({ waitMs: LONG_MS });
  front.switchTo(undefined);
  await until(() => [holder, rival].every(({ client }) => client.status !== "ready"), "the connections to be lost");
  const asked = rival.holdfast
    .mutex(name)
    .tryAcquire()
    .then(
      (granted) => (granted === null ? "held" : "granted"),
      () => "refused",
    );
  await one.command("REPLICAOF", "NO", "ONE");
  front.switchTo(one.port);
  expect(await asked).not.toBe("granted");
  await lease.release();
  await rival.holdfast.mutex(name).run(() => {}, { waitMs: LONG_MS });
});
