/** Tests servers that work together: a quorum, a Sentinel set, a cluster. Every node is examined. */

import { createHoldfast, StoreError } from "holdfast";
import { leastPrivilege } from "holdfast/diagnosis";
import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisCluster, startCluster } from "../../../../tests/support/redis-cluster.js";
import { type RedisSentinel, startSentinel } from "../../../../tests/support/redis-sentinel.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { CHECK_IDS } from "../../src/doctor/table.js";
import { targetsOf } from "../../src/doctor/target.js";
import { at, examined, expectNothingCritical, expectNoWarning, said } from "./examining.js";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let cluster: RedisCluster;
let sentinel: RedisSentinel;
let servers: RedisServer[];

beforeAll(async () => {
  const start = (): Promise<RedisServer> => startRedis();
  [cluster, sentinel, servers] = await Promise.all([
    startCluster({ masters: 2 }),
    // A long timeout, so that no failover starts on a slow machine.
    startSentinel({ replicas: 1, downAfterMs: 60_000 }),
    Promise.all([start(), start(), start()]),
  ]);
});
afterAll(async () => {
  await Promise.all([cluster?.stop(), sentinel?.stop(), ...(servers ?? []).map((server) => server.stop())]);
});

test("a quorum that lists a server twice, or a server and its replica, is critical", async () => {
  const [one, two, three] = servers as [RedisServer, RedisServer, RedisServer];
  const look = async (...ports: readonly number[]): Promise<string> =>
    said(
      await examined(
        ports.map((port) => at(port)),
        ["redlock"],
        { topology: "redlock" },
      ),
      "redlock",
    );
  expect(await look(one.port, two.port, three.port)).toBe(Array(3).fill("ok: an independent server").join(" | "));
  const twice = [at(one.port), at(two.port), { ...at(one.port), node: `localhost:${one.port}` }];
  expect(said(await examined(twice, ["redlock"], { topology: "redlock" }), "redlock")).toContain(
    `critical: the same server as 127.0.0.1:${one.port}`,
  );
  expect(await look(one.port, two.port)).toMatch(/^warning: 2 servers/);
  await three.command("REPLICAOF", "127.0.0.1", one.port);
  const isLinked = async (): Promise<void> =>
    expect(String(await three.command("INFO", "replication"))).toContain("master_link_status:up");
  await vi.waitFor(isLinked, 20_000);
  expect(await look(one.port, two.port, three.port)).toContain(`critical: a replica of 127.0.0.1:${one.port}`);
  await three.command("REPLICAOF", "NO", "ONE");
});

test("a server of a quorum that does not reply is a warning, and the others are examined", async () => {
  const [one, two] = servers as [RedisServer, RedisServer];
  const gone = await startRedis();
  await gone.stop();
  const findings = await examined([at(one.port), at(gone.port), at(two.port)], ["role", "eviction"], {
    topology: "redlock",
  });
  expect(said(findings, "role", `127.0.0.1:${gone.port}`)).toMatch(/^warning: no reply: .*ECONNREFUSED/);
  expect(said(findings, "eviction", `127.0.0.1:${two.port}`)).toMatch(/^ok/);
  expect(said(findings, "eviction", `127.0.0.1:${gone.port}`)).toMatch(/^skipped/);
});

test("a promoted server is quiet for as long as the library says, and the doctor does not start the quiet time", async () => {
  const [one, two] = servers as [RedisServer, RedisServer];
  const [before, after] = [new Redis(one.port), new Redis(two.port)];
  const holdfasts = [createHoldfast({ redis: before }), createHoldfast({ redis: after })];
  const grace = async (): Promise<string> => said(await examined([at(two.port)], ["grace"]), "grace");
  try {
    await holdfasts[0]?.mutex("before").run(() => {}, { leaseMs: 60_000 });
    await two.command("REPLICAOF", "127.0.0.1", one.port);
    await vi.waitFor(async () => expect(await two.command("EXISTS", "hf:lineage")).toBe(1), 20_000);
    await two.command("REPLICAOF", "NO", "ONE");
    expect(await grace()).toMatch(
      /^warning: has been promoted since it last granted locks; no program has sent it a request yet/,
    );
    expect(await grace()).toMatch(/no program has sent it a request yet/);
    const refusal = await holdfasts[1]
      ?.mutex("after")
      .tryAcquire()
      .catch((reason: unknown) => reason);
    expect(refusal).toBeInstanceOf(StoreError);
    const { resumesInMs = 0 } = refusal as StoreError;
    const told = await grace();
    const [, rest = "0"] = /^warning: quiet for (\d+)s more, until .*: it was promoted/.exec(told) ?? [];
    expect(Number(rest), told).toBeGreaterThan(0);
    // The doctor reads the value a little later and prints whole seconds.
    expect(Number(rest) * 1_000).toBeLessThanOrEqual(resumesInMs);
  } finally {
    await Promise.all(holdfasts.map((holdfast) => holdfast.close()));
    before.disconnect();
    after.disconnect();
  }
});

test("behind Sentinel, the primary and its replica are examined", async () => {
  const redis = new Redis({ sentinels: [...sentinel.addresses], name: sentinel.name });
  try {
    const primary = `127.0.0.1:${(await sentinel.master()).port}`;
    const findings = await examined(await targetsOf({ topology: "sentinel", clients: [redis] }), CHECK_IDS, {
      topology: "sentinel",
    });
    expect(new Set(findings.map(({ node }) => node))).toEqual(
      new Set(sentinel.nodes.map(({ port }) => `127.0.0.1:${port}`)),
    );
    expect(said(findings, "role", primary)).toBe("ok: primary");
    expect(said(findings, "restart-wipe", primary)).toMatch(/^critical: nothing is written to disk, 1 replica/);
    expect(said(findings, "replicas", primary)).toMatch(/^warning: 1 replica, min-replicas-to-write 0/);
    expect(findings.filter(({ status }) => status === "unknown")).toEqual([]);
  } finally {
    redis.disconnect();
  }
});

test("the minimal user can examine every node of a cluster; a slot without a server and a moving slot are found", async () => {
  const { server, cluster: besides, clusterClients } = leastPrivilege("hf");
  const rules = ["on", ">secret", "resetchannels", ...server, ...besides, ...clusterClients];
  for (const node of cluster.nodes) await node.command("ACL", "SETUSER", "locks", ...rules);
  const connect = async (redisOptions: object): Promise<Cluster> => {
    const redis = new Cluster([{ host: "127.0.0.1", port: cluster.ports[0] as number }], {
      redisOptions,
      lazyConnect: true,
    });
    redis.on("error", () => {});
    await redis.connect();
    return redis;
  };
  const own = await connect({ username: "locks", password: "secret" });
  const admin = await connect({});
  try {
    const options = { topology: "cluster" } as const;
    const own_ = await examined(
      await targetsOf({ topology: "cluster", clients: [own] }),
      ["acl", "cluster", "pubsub", "scripts", "role", "grace"],
      options,
    );
    expect(new Set(own_.map(({ node }) => node)).size).toBe(4);
    expectNothingCritical(own_);
    expectNoWarning(own_);
    expect(said(own_, "pubsub")).toMatch(/(ok|warning): a message to a sharded inbox arrived after /);

    const all = await examined(await targetsOf({ topology: "cluster", clients: [admin] }), CHECK_IDS, options);
    expect(said(all, "leftovers")).toContain("ok: nothing left over");
    for (const node of cluster.nodes) expect(await node.command("DBSIZE")).toBe(0);

    const [from, to] = cluster.nodes as [RedisCluster["nodes"][number], RedisCluster["nodes"][number]];
    await from.command("CLUSTER", "SETSLOT", 7, "MIGRATING", to.id);
    const look = async (): Promise<string> =>
      said(
        await examined(await targetsOf({ topology: "cluster", clients: [admin] }), ["cluster"], options),
        "cluster",
        `127.0.0.1:${from.port}`,
      );
    expect(await look()).toBe("warning: 1 slot being moved: 7");
    await from.command("CLUSTER", "SETSLOT", 7, "STABLE");
    await from.command("CLUSTER", "DELSLOTS", 7);
    const isDown = async (): Promise<void> =>
      expect(await look()).toMatch(/^critical: cluster_state (ok|fail), 1 slot without a server/);
    await vi.waitFor(isDown, 20_000);
  } finally {
    own.disconnect();
    admin.disconnect();
  }
});
