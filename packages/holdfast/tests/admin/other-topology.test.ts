/** Listings on servers with a lock of clients that use another topology: they show it, and it hides no other lock. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { clients, lookUp, survey, surveyAll } from "../../src/admin/index.js";
import { createHoldfast, type Holdfast, type Lease } from "../../src/index.js";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let servers: RedisServer[];
let connections: Redis[];
const open: Holdfast[] = [];

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  connections = servers.map(({ url }) => new Redis(url));
});
afterAll(async () => {
  await Promise.all(open.map((holdfast) => holdfast.close()));
  for (const connection of connections) connection.disconnect();
  await Promise.all(servers.map((server) => server.stop()));
});

/** A Holdfast on all servers, and one on the first of them alone. */
function both(): { readonly prefix: string; readonly quorum: Holdfast; readonly single: Holdfast } {
  const prefix = randomUUID();
  const shared = { prefix, commandTimeoutMs: 30_000 };
  const quorum = createHoldfast({ redlock: connections, ...shared });
  const single = createHoldfast({ redis: connections[0] as Redis, failoverGrace: "off", ...shared });
  open.push(quorum, single);
  return { prefix, quorum, single };
}

/** Servers that have just started grant nothing for the length of the first lease, so it is short. */
async function redlock(quorum: Holdfast): Promise<Lease> {
  const lock = quorum.redlock("deploy");
  await (await lock.acquire({ leaseMs: 1_000, waitMs: 60_000 })).release();
  return await lock.acquire({ leaseMs: 600_000, label: "release", waitMs: 60_000 });
}

test("a Redlock is listed as such on each of its servers, beside the locks there", async () => {
  const { quorum, single } = both();
  const lease = await redlock(quorum);
  await single.mutex("nightly").acquire({ leaseMs: 600_000 });
  const { locks } = await surveyAll(single);
  expect(locks.map(({ name, kind, state, needsTopology }) => ({ name, kind, state, needsTopology }))).toEqual(
    expect.arrayContaining([
      { name: "deploy", kind: "redlock", state: "held", needsTopology: "redlock" },
      { name: "nightly", kind: "mutex", state: "held", needsTopology: undefined },
    ]),
  );
  expect(locks).toHaveLength(2);
  const [shown] = await lookUp(single, "deploy");
  expect(shown).toMatchObject({
    kind: "redlock",
    holders: [{ owner: lease.owner, label: "release", pid: process.pid }],
  });
  expect((await clients(single)).flatMap(({ held }) => held.map(({ name }) => name)).toSorted()).toEqual([
    "deploy",
    "nightly",
  ]);
});

test("locks on single servers are listed beside the Redlocks of a group, with the holders of each server", async () => {
  const { prefix, quorum, single } = both();
  await redlock(quorum);
  const [first, second] = await Promise.all([
    single.mutex("nightly").acquire({ leaseMs: 600_000 }),
    createOn(1, prefix).mutex("nightly").acquire({ leaseMs: 600_000 }),
  ]);
  const { locks } = await survey(quorum);
  expect(locks.map(({ name, kind, state, needsTopology }) => ({ name, kind, state, needsTopology }))).toEqual(
    expect.arrayContaining([
      { name: "deploy", kind: "redlock", state: "held", needsTopology: undefined },
      { name: "nightly", kind: "mutex", state: "held", needsTopology: "single-server" },
    ]),
  );
  const [deploy] = await lookUp(quorum, "deploy");
  expect(deploy?.servers).toMatchObject({ total: 3 });
  expect(deploy?.servers?.holding, "a majority").toBeGreaterThanOrEqual(2);
  const [nightly] = await lookUp(quorum, "nightly");
  expect(nightly?.holders.map(({ owner }) => owner).toSorted()).toEqual([first.owner, second.owner].toSorted());
  const addressOf = (index: number): string => `127.0.0.1:${connections[index]?.options.port}`;
  expect(nightly?.perServer).toMatchObject([
    { server: { index: 0, address: addressOf(0) }, holders: [{ owner: first.owner }] },
    { server: { index: 1, address: addressOf(1) }, holders: [{ owner: second.owner }] },
  ]);
  expect(nightly?.server).toBeUndefined();
  await first.release();
  const [left] = await lookUp(quorum, "nightly");
  expect([left?.server, left?.perServer]).toEqual([{ index: 1, address: addressOf(1) }, undefined]);
});

function createOn(server: number, prefix: string): Holdfast {
  const redis = connections[server] as Redis;
  const holdfast = createHoldfast({ redis, prefix, failoverGrace: "off", commandTimeoutMs: 30_000 });
  open.push(holdfast);
  return holdfast;
}

test("a lock that the Redis user may not read is listed with the refusal, and hides no other", async () => {
  const { prefix, single } = both();
  await single.mutex("open").acquire({ leaseMs: 600_000 });
  await single.mutex("secret").acquire({ leaseMs: 600_000 });
  const [server] = servers as [RedisServer];
  const mayRead = [`~${prefix}:mutex:{open}*`, `~${prefix}:client:*`, `~${prefix}:`, `~${prefix}:protocol`];
  await server.command("ACL", "SETUSER", "limited", "on", ">pass", "+@all", "&*", ...mayRead);
  const connection = new Redis({ port: server.port, username: "limited", password: "pass" });
  const holdfast = createHoldfast({ redis: connection, prefix, failoverGrace: "off", commandTimeoutMs: 30_000 });
  try {
    const { locks } = await surveyAll(holdfast);
    expect(locks.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toMatchObject([
      { name: "open", state: "held" },
      { name: "secret", state: "broken", unreadable: { keys: [], reason: expect.stringContaining("permission") } },
    ]);
    // No key with that name may be read, so it is unknown whether the lock is held.
    await expect(lookUp(holdfast, "secret")).rejects.toThrow("permission");
  } finally {
    await holdfast.close();
    connection.disconnect();
  }
});
