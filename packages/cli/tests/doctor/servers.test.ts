/** Tests checks on real servers: some with a known problem for each check, and one without critical findings. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { counter, fencedSet, versioned } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { NobodyAnswersError } from "../../src/doctor/examine.js";
import { CHECK_IDS } from "../../src/doctor/table.js";
import { at, examined, expectNothingCritical, said } from "./examining.js";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** Configured as docs/safety.md recommends. */
let healthy: RedisServer;
/** Configured with as many problems as possible. */
let unwell: RedisServer;
/** A replica of `unwell`. */
let replica: RedisServer;

beforeAll(async () => {
  [healthy, unwell, replica] = await Promise.all([
    startRedis({ persist: true, args: ["--tcp-keepalive", "60"] }),
    startRedis({
      args: [
        ...["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--protected-mode", "no"],
        ...["--maxclients", "60", "--timeout", "30", "--tcp-keepalive", "0", "--repl-diskless-sync-delay", "0"],
        // Saving a snapshot fails because a directory has the name of its file.
        ...["--dbfilename", "dump.rdb", "--save", "3600 1"],
      ],
    }),
    startRedis(),
  ]);
  await replica.command("REPLICAOF", "127.0.0.1", unwell.port);
  await replicaIsOnline();
});
/** Resolves once the replica has a copy of the data of `unwell`, which then lists it. */
async function replicaIsOnline(): Promise<void> {
  await vi.waitFor(async () => {
    expect(String(await unwell.command("INFO", "replication"))).toMatch(/slave0:.*state=online/);
  });
}

afterAll(async () => {
  await Promise.all([healthy, unwell, replica].map((server) => server?.stop()));
});

test("a well configured server has no critical finding, and the doctor leaves nothing behind", async () => {
  const redis = new Redis(healthy.port);
  const holdfast = createHoldfast({ redis });
  const lease = await holdfast.mutex("held").acquire();
  try {
    // The client writes its record in the background.
    const written = expect.arrayContaining([expect.stringMatching(/^hf:client:/), "hf:protocol"]);
    await vi.waitFor(async () => expect(await redis.keys("*")).toEqual(written));
    const before = (await redis.keys("*")).toSorted();
    const findings = await examined([at(healthy.port)], CHECK_IDS);
    expectNothingCritical(findings);
    expect(new Set(findings.map(({ id }) => id))).toEqual(new Set(CHECK_IDS));
    expect(findings.filter(({ status }) => status === "unknown")).toEqual([]);
    for (const id of ["eviction", "memory", "role", "acl", "scripts", "clock-runs", "stop-writes", "leftovers"]) {
      expect(said(findings, id)).toMatch(/^ok/);
    }
    // A slow machine may cause this warning.
    expect(said(findings, "pubsub")).toMatch(/arrived after .*; 1 receiver counted/);
    expect((await redis.keys("*")).toSorted()).toEqual(before);
    expect(await redis.pubsub("CHANNELS", "hf:in:doctor*")).toEqual([]);
    lease.assertHeld();
  } finally {
    await holdfast.close();
    redis.disconnect();
  }
});

test("an examination loads no script that grants locks", async () => {
  const scripts = await import("../../../holdfast/src/generated/scripts.js");
  await healthy.command("SCRIPT", "FLUSH");
  await examined([at(healthy.port)], ["scripts", "acl", "pubsub"]);
  const granting = Object.values(scripts).filter((script) => "grants" in script && script.grants);
  expect(granting.length).toBeGreaterThan(3);
  expect(await healthy.command("SCRIPT", "EXISTS", ...granting.map(({ sha1 }) => sha1))).toEqual(granting.map(() => 0));
});

test("wrong settings are found, each with a fix", async () => {
  const findings = await examined(
    [at(unwell.port)],
    ["eviction", "memory", "persistence", "restart-wipe", "replicas", "connections", "exposure", "role"],
  );
  expect(said(findings, "eviction", `127.0.0.1:${unwell.port}`)).toMatch(
    /^critical: maxmemory-policy allkeys-lru, maxmemory 10\d MB/,
  );
  expect(said(findings, "memory", `127.0.0.1:${unwell.port}`)).toMatch(/^ok: .* of 10\d MB used/);
  expect(said(findings, "persistence", `127.0.0.1:${unwell.port}`)).toMatch(/^warning: snapshots only \(save 3600 1\)/);
  expect(said(findings, "replicas", `127.0.0.1:${unwell.port}`)).toMatch(
    /^warning: 1 replica, min-replicas-to-write 0/,
  );
  expect(said(findings, "connections", `127.0.0.1:${unwell.port}`)).toMatch(
    /warning: timeout 30 s.*info: tcp-keepalive 0/,
  );
  // The server listens only on this machine, like all test servers.
  expect(said(findings, "exposure", `127.0.0.1:${unwell.port}`)).toMatch(
    /^ok: no password, but it listens only on this machine/,
  );
  // The doctor found the replica through its primary. Being a replica is not a problem here.
  expect(said(findings, "role", `127.0.0.1:${replica.port}`)).toBe(`ok: replica of 127.0.0.1:${unwell.port}`);
  for (const { status, fix } of findings) if (status === "finding") expect(fix).toBeTruthy();

  await unwell.command("CONFIG", "SET", "save", "");
  expect(said(await examined([at(unwell.port)], ["restart-wipe"]), "restart-wipe")).toMatch(
    /critical: nothing is written to disk, 1 replica/,
  );
  await unwell.command("CONFIG", "SET", "save", "3600 1");
});

test("memory that is almost full is found", async () => {
  const used = Number(/used_memory:(\d+)/.exec(String(await unwell.command("INFO", "memory")))?.[1]);
  await unwell.command("CONFIG", "SET", "maxmemory", Math.round(used * 1.1));
  expect(said(await examined([at(unwell.port)], ["memory"]), "memory", `127.0.0.1:${unwell.port}`)).toMatch(
    /^(warning|critical): .* (8[1-9]|9\d|1\d\d)%$/,
  );
  await unwell.command("CONFIG", "SET", "maxmemory", "100mb");
});

test("a server that is close to its connection limit is found", async () => {
  // Over 80 % of the limit, with room for connections that the server has not closed yet.
  const crowd = Array.from({ length: 50 }, () => new Redis({ port: unwell.port, retryStrategy: () => null }));
  try {
    await Promise.all(crowd.map((one) => one.call("PING")));
    expect(said(await examined([at(unwell.port)], ["connections"]), "connections", `127.0.0.1:${unwell.port}`)).toMatch(
      /warning: \d+ of 60 clients/,
    );
  } finally {
    for (const one of crowd) one.disconnect();
  }
});

test("a failed snapshot is found, and is critical because it stops every write", async () => {
  const directory = String(((await unwell.command("CONFIG", "GET", "dir")) as string[])[1]);
  await mkdir(join(directory, "dump.rdb"), { recursive: true });
  await unwell.command("SET", "other", "1");
  await unwell.command("BGSAVE", "SCHEDULE");
  await vi.waitFor(
    async () => expect(String(await unwell.command("INFO", "persistence"))).toContain("rdb_last_bgsave_status:err"),
    20_000,
  );
  const findings = await examined([at(unwell.port)], ["stop-writes", "persistence"]);
  expect(said(findings, "stop-writes", `127.0.0.1:${unwell.port}`)).toMatch(
    /^critical: the last snapshot failed \(err\), stop-writes-on-bgsave-error yes/,
  );
  expect(said(findings, "persistence", `127.0.0.1:${unwell.port}`)).toMatch(/^critical: rdb_last_bgsave_status is err/);
  // The server really refuses the write.
  await expect(unwell.command("SET", "other", "2")).rejects.toThrow("MISCONF");
});

test("a URL that leads to a replica is critical, and the primary is named", async () => {
  const findings = await examined([at(replica.port)], ["role", "replica-lag", "grace"]);
  expect(said(findings, "role")).toBe(`critical: a replica of 127.0.0.1:${unwell.port}`);
  expect(said(findings, "replica-lag")).toMatch(/^(ok|warning): (connected|not connected)/);
  expect(said(findings, "grace")).toBe("skipped: a replica");
});

test("a replica that has stopped is reported as late and without a reply", async () => {
  const { port } = replica;
  await replicaIsOnline();
  replica.freeze();
  try {
    await vi.waitFor(
      async () => expect(String(await unwell.command("INFO", "replication"))).toMatch(/slave0:.*lag=(?:[2-9]|\d\d)/),
      20_000,
    );
    const findings = await examined([at(unwell.port)], ["replica-lag", "role"], { commandTimeoutMs: 1_000 });
    expect(said(findings, "replica-lag", `127.0.0.1:${unwell.port}`)).toMatch(
      new RegExp(`^warning: 127.0.0.1:${port} .* and \\d+ s behind`),
    );
    expect(said(findings, "role", `127.0.0.1:${port}`)).toMatch(/^warning: no reply/);
    expect(said(findings, "replica-lag", `127.0.0.1:${port}`)).toMatch(/^skipped/);
  } finally {
    replica.resume();
  }
});

test("a script that blocks the server is found in SLOWLOG, if it was too slow for the lease", async () => {
  await healthy.command("CONFIG", "SET", "slowlog-log-slower-than", "10000");
  await healthy.command(
    "EVAL",
    "local t = redis.call('TIME') repeat local n = redis.call('TIME') until (n[1] - t[1]) * 1000000 + n[2] - t[2] > 60000 return 1",
    "0",
  );
  expect(said(await examined([at(healthy.port)], ["busy"], { leaseMs: 500 }), "busy")).toMatch(
    /^warning: eval \d+ ms at .*BUSY after 5000 ms/,
  );
  expect(said(await examined([at(healthy.port)], ["busy"], { leaseMs: 600_000 }), "busy")).toMatch(/^ok/);
});

test("replies that are too slow for the lease are found", async () => {
  expect(said(await examined([at(healthy.port)], ["latency"], { leaseMs: 0.1 }), "latency")).toMatch(
    /^critical: p50 .* of \d+/,
  );
});

test("a client that would keep a dead connection is named, with its current settings", async () => {
  const [bare, cured] = [new Redis(healthy.port), new Redis(healthy.port, { socketTimeout: 60_000 })];
  const holdfasts = [
    createHoldfast({ redis: bare, clientName: "bare" }),
    createHoldfast({ redis: cured, clientName: "cured" }),
  ];
  const control = new Redis(healthy.port);
  try {
    await Promise.all(holdfasts.map((holdfast, i) => holdfast.mutex(`client-${i}`).acquire()));
    await vi.waitFor(async () => {
      const keys = await control.keys("hf:client:*");
      const names = await Promise.all(keys.map((key) => control.hget(key, "name")));
      expect(names).toEqual(expect.arrayContaining(["bare", "cured"]));
    });
    const told = said(await examined([at(healthy.port)], ["client-timeouts"]), "client-timeouts");
    expect(told).toContain(`bare, pid ${process.pid} on`);
    expect(told).toContain("(ioredis, no socket timeout, keepalive 30000 ms)");
    expect(told).not.toContain("cured");
  } finally {
    await Promise.all(holdfasts.map((holdfast) => holdfast.close()));
    for (const redis of [bare, cured, control]) redis.disconnect();
  }
});

test("an empty or foreign client record is skipped", async () => {
  const redis = new Redis(healthy.port);
  try {
    const records = { old: "", foreign: "not JSON", odd: '{"library":7}' };
    for (const [id, timeouts] of Object.entries(records))
      await redis.hset(`hf:client:${id}`, { host: "h", pid: 1, timeouts });
    const findings = await examined([at(healthy.port)], ["client-timeouts"]);
    expect(said(findings, "client-timeouts")).not.toContain("pid 1 on h");
    for (const id of Object.keys(records)) await redis.del(`hf:client:${id}`);
  } finally {
    redis.disconnect();
  }
});

test("clients whose records name protocols that cannot work together are reported", async () => {
  const redis = new Redis(healthy.port);
  try {
    // Not protocol 1, which the clients of other tests use.
    const records = { two: { version: "2.0.0", protocol: 2 }, three: { version: "3.0.0", protocol: 3, name: "new\n" } };
    for (const [id, record] of Object.entries(records))
      await redis.hset(`hf:client:${id}`, { host: "h", pid: 1, ...record });
    await redis.hset("hf:client:foreign", { protocol: 4 });
    const told = said(await examined([at(healthy.port)], ["protocols"]), "protocols");
    expect(told).toMatch(
      /protocol 2: pid 1 on h \(version 2\.0\.0\); protocol 3: new.*, pid 1 on h \(version 3\.0\.0\)/s,
    );
    expect(told).not.toContain("protocol 4");
    for (const id of [...Object.keys(records), "foreign"]) await redis.del(`hf:client:${id}`);
  } finally {
    redis.disconnect();
  }
});

test("leftover keys and names with several kinds are found, and locks in use are not reported", async () => {
  const redis = new Redis(healthy.port);
  const holdfast = createHoldfast({ redis });
  const lease = await holdfast.mutex("busy").acquire();
  const waiting = holdfast.mutex("busy").acquire({ waitMs: 30_000 });
  waiting.catch(() => {});
  try {
    await vi.waitFor(async () => expect(await redis.zcard("hf:mutex:{busy}:queue")).toBe(1));
    const clean = await examined([at(healthy.port)], ["leftovers", "shared"]);
    expect(said(clean, "leftovers")).toMatch(/^ok/);
    await redis.mset({ "hf:mutex:{stuck}": "ReH8GUZ6AOmR69do/1/30000/1", "hf:jobs:1": "x", "cache:user:1": "x" });
    await redis.set("hf:mutex:{foreign}", "not an owner", "EX", 60);
    await redis.set("hf:mutex:{paused}:pause", "pause/1795249801367/1795257001000/1/ReH8GUZ6AOmR69do/ana/db", "EX", 60);
    await redis.zadd("hf:mutex:{busy}:queue", 99, "AAAAAAAAAAAAAAAA/3/30000/1");
    const findings = await examined([at(healthy.port)], ["leftovers", "shared"]);
    const told = said(findings, "leftovers");
    expect(told).toContain("warning: 1 key without an expiry: hf:mutex:{stuck}");
    expect(told).toMatch(/warning: 2 keys of unknown kind or form: .*hf:(jobs:1|mutex:\{foreign\})/);
    expect(told).toContain(
      "warning: 1 queued waiter whose client is gone: hf:mutex:{busy}:queue: AAAAAAAAAAAAAAAA/3/30000/1",
    );
    expect(told).not.toContain("several kinds");
    await holdfast.semaphore("busy", { permits: 1 }).acquire();
    await holdfast.election("busy").campaign("me");
    expect(said(await examined([at(healthy.port)], ["leftovers"]), "leftovers")).toContain(
      "info: in use as several kinds: busy (election, mutex, semaphore)",
    );
    expect(said(findings, "shared")).toMatch(/^info: other keys: cache:\* \(1\); users who can empty it: default/);
    await lease.release();
    await (await waiting).release();
  } finally {
    await holdfast.close();
    await redis.flushall();
    redis.disconnect();
  }
});

test("values that recipes keep without an expiry are no leftovers", async () => {
  const redis = new Redis(healthy.port);
  const holdfast = createHoldfast({ redis });
  try {
    const lease = await holdfast.mutex("report").acquire();
    await fencedSet(holdfast, { key: "report:last", value: "42", lease });
    await lease.release();
    await counter(holdfast, "stock").put(5, { requestId: "delivery-1" });
    await versioned(holdfast, "config").update(() => ({ size: 1 }));
    const kept = (await redis.keys("hf:*")).filter((key) =>
      /^hf:(?:counter|fence|versioned):[^:]*(?::\{.*\})?$/.test(key),
    );
    expect(await Promise.all(kept.map((key) => redis.ttl(key)))).toEqual([-1, -1, -1]);
    expect(said(await examined([at(healthy.port)], ["leftovers"]), "leftovers")).toMatch(/^ok/);
  } finally {
    await holdfast.close();
    await redis.flushall();
    redis.disconnect();
  }
});

test("a server that does not reply is an error with the reason, not a report without findings", async () => {
  const gone = await startRedis();
  await gone.stop();
  const error = await examined([at(gone.port)], CHECK_IDS).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(NobodyAnswersError);
  expect(String(error)).toContain("ECONNREFUSED");
});
