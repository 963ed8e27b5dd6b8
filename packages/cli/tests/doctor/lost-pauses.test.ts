/**
 * Tests pauses that are in the history but that the server has forgotten, as after a failover that loses the last
 * writes.
 */
import { createHoldfast, type Holdfast } from "holdfast";
import { appendHistory, type HistoryRecorder, recordHistory } from "holdfast/admin";
import { leastPrivilege } from "holdfast/diagnosis";
import { Cluster, Redis, type RedisOptions } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { startCluster } from "../../../../tests/support/redis-cluster.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import type { Finding } from "../../src/doctor/check.js";
import { judge } from "../../src/doctor/examine.js";
import type { PauseFacts, RecordedPause } from "../../src/doctor/facts.js";
import { MOST_HISTORIES } from "../../src/doctor/read/pauses.js";
import { targetsOf } from "../../src/doctor/target.js";
import { at, examined, said } from "./examining.js";
import { facts } from "./samples.js";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const ID = "lost-pauses";
const WORDS = { label: "db maintenance", by: "ana" };

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let recorder: HistoryRecorder;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
});
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});
beforeEach(() => {
  holdfast = createHoldfast({ redis });
  recorder = recordHistory(holdfast);
});
afterEach(async () => {
  await recorder.stop();
  await holdfast.close();
  await redis.flushall();
});

async function told(): Promise<string> {
  return said(await found(), ID);
}

async function found(options: RedisOptions = {}): Promise<readonly Finding[]> {
  await recorder.flush();
  return await examined([at(server.port, options)], [ID], { forMs: 60_000 });
}

/** Deletes everything that the server knows about the locks of a name, except the history. */
async function forget(from: Redis, name: string): Promise<void> {
  const keys = (await from.keys("*")).filter((key) => key.includes(name) && !key.startsWith("hf:history:"));
  expect(keys).not.toEqual([]);
  await from.del(...keys);
}

const KINDS = ["mutex", "reentrant-mutex", "semaphore", "read-write-lock", "election"] as const;

test.each(KINDS)("%s: a pause passes while it exists, and is a warning when the server has lost it", async (kind) => {
  await holdfast.pause("deploy", { ...WORDS, kind });
  await holdfast.pause("other", { ...WORDS, kind });
  expect(await told()).toBe("ok: 2 histories: no pause was lost");
  await forget(redis, "deploy");
  expect(await told()).toMatch(
    new RegExp(
      `^warning: ${kind.replace("reentrant-", "")} deploy was paused by ana \\("db maintenance"\\) from 2\\d{3}-.*Z until resumed, and is no longer paused$`,
    ),
  );
});

test.each(["mutex", "semaphore"] as const)("%s: a pause is found whether the lock is held or not", async (kind) => {
  const lock = kind === "mutex" ? holdfast.mutex("deploy") : holdfast.semaphore("deploy", { permits: 3 });
  const lease = await lock.acquire();
  await holdfast.pause("deploy", { ...WORDS, kind });
  expect(await told()).toMatch(/^ok/);
  await lease.release();
  expect(await told()).toMatch(/^ok/);
  await redis.del(`hf:${kind}:{deploy}:pause`);
  expect(await told()).toMatch(new RegExp(`^warning: ${kind} deploy was paused by ana`));
});

test("a resumed pause is not reported, even if the history does not contain the resume", async () => {
  await holdfast.pause("deploy", WORDS);
  await holdfast.resume("deploy", { by: "ben" });
  expect(await told()).toMatch(/^ok/);
  // The lock itself remembers a resume for a while.
  await redis.del("hf:mutex:{deploy}:resumed");
  expect(await told()).toMatch(/^ok/);

  await holdfast.pause("quiet", WORDS);
  await recorder.stop();
  await holdfast.resume("quiet", { by: "ben" });
  expect(await told()).toMatch(/^ok/);
  await redis.del("hf:mutex:{quiet}:resumed");
  expect(await told()).toMatch(/^warning: mutex quiet was paused by ana/);
});

test("an expired pause is not reported; a lost one is reported with its end and the command to pause again", async () => {
  const [seconds] = await redis.time();
  // Only recorded and not really paused: on a slow machine, the end of a real pause could pass before it begins.
  const short = { ...WORDS, kind: "mutex", name: "short", untilAtMs: Number(seconds) * 1_000 } as const;
  await appendHistory(holdfast, { ...short, what: "paused", agoMs: 60_000 });
  expect(await told()).toMatch(/^ok: 1 history:/);

  const untilAtMs = (Number(seconds) + 7_200) * 1_000;
  await holdfast.pause("it's long", { ...WORDS, untilAtMs });
  await forget(redis, "it's long");
  const [finding] = await found();
  const until = new Date(untilAtMs).toISOString();
  expect(finding?.measured).toContain(` until ${until.slice(0, 19).replace("T", " ")}Z, and is no longer`);
  expect(finding?.fix).toContain(
    `if the maintenance continues, run holdfast pause 'it'\\''s long' -m 'db maintenance' --until ${until}; if`,
  );
  expect(finding?.risk).toMatch(/failover.*lost the pause/);
});

test("a mutex with a key is checked under that key", async () => {
  await holdfast.pause("stock", { ...WORDS, key: "legacy:stock" });
  expect(await told()).toMatch(/^ok/);
  await redis.del("hf:mutex:mapped:{legacy:stock}:pause");
  expect(await told()).toMatch(/^warning: mutex stock \(key legacy:stock\) was paused by ana/);
});

test("events count by their time, not by the order in which they were written", async () => {
  const event = { kind: "mutex", name: "deploy", by: "ana" } as const;
  await appendHistory(holdfast, { ...event, what: "resumed" });
  await appendHistory(holdfast, { ...event, what: "paused", label: "early", agoMs: 60_000 });
  expect(await told()).toMatch(/^ok/);
});

test("without any history, the check is skipped once, with the reason", async () => {
  const findings = await found();
  expect(findings).toEqual([expect.objectContaining({ id: ID, status: "skipped" })]);
  expect(findings[0]?.measured).toMatch(/^there is no history, so lost pauses cannot be found/);
  expect(findings[0]?.measured).toContain("recordHistory");
});

test("the check needs the minimal permissions and those of tools, and names missing ones", async () => {
  await holdfast.pause("deploy", WORDS);
  await forget(redis, "deploy");
  const { server: rules } = leastPrivilege("hf");
  const look = async (username: string): Promise<string> => said(await found({ username, password: "secret" }), ID);
  await redis.call("ACL", "SETUSER", "looks", "on", ">secret", "resetchannels", ...rules, "+scan", "+xrevrange");
  expect(await look("looks")).toMatch(/^warning: mutex deploy/);
  await redis.call("ACL", "SETUSER", "works", "on", ">secret", "resetchannels", ...rules, "+scan");
  expect(await look("works")).toMatch(/^unknown: no history could be read \(.*(permission|NOPERM|can't run)/);
});

test("the check reads a limited number of histories, and reports that it stopped", async () => {
  await redis.eval(
    "for i = 1, tonumber(ARGV[1]) do redis.call('XADD', 'hf:history:{n' .. i .. '}', '*', 'at', 1, 'entry', '{}') end",
    0,
    MOST_HISTORIES + 1,
  );
  expect(await told()).toBe(
    `unknown: not all histories were read: ${MOST_HISTORIES} histories, and then there were too many`,
  );
});

test("in a cluster, each node reports its own histories", async () => {
  const cluster = await startCluster({ masters: 2 });
  let client: Cluster | undefined;
  let spread: Holdfast | undefined;
  let recording: HistoryRecorder | undefined;
  try {
    const nodes = new Cluster([{ host: "127.0.0.1", port: cluster.ports[0] as number }]);
    client = nodes;
    spread = createHoldfast({ redis: nodes });
    const recorded = recordHistory(spread);
    recording = recorded;
    const look = async (): Promise<readonly string[]> => {
      await recorded.flush();
      const targets = await targetsOf({ topology: "cluster", clients: [nodes] });
      const findings = await examined(targets, [ID], { topology: "cluster", forMs: 60_000 });
      return findings
        .filter(({ status }) => status !== "skipped")
        .map(({ status, measured }) => `${status}: ${measured}`);
    };
    expect(await look()).toEqual([]);
    // The slot of the first name is in the upper half, and the slots of the others are in the lower half.
    for (const name of ["a", "b", "c"]) await spread.pause(name, WORDS);
    expect((await look()).toSorted()).toEqual([
      "ok: 1 history: no pause was lost",
      "ok: 2 histories: no pause was lost",
    ]);
    await nodes.del("hf:mutex:{a}:pause");
    expect((await look()).toSorted()).toEqual([
      expect.stringMatching(/^finding: mutex a was paused by ana/),
      "ok: 2 histories: no pause was lost",
    ]);
  } finally {
    await recording?.stop();
    await spread?.close();
    client?.disconnect();
    await cluster.stop();
  }
});

const PAUSED: RecordedPause = { kind: "mutex", name: "deploy", by: "ana", label: "db", atMs: 1_000, isInForce: false };

function verdicts(pauses: Partial<PauseFacts>, rest: object = {}): string[] {
  const its: PauseFacts = { nowMs: 5_000, histories: 3, recorded: [], ...pauses };
  return judge([facts("Redis 7.2", { pauses: its, ...rest })])
    .filter(({ id }) => id === ID)
    .map(({ status, measured }) => `${status}: ${measured}`);
}

test("verdicts depend on the recorded pauses, the role and the topology", () => {
  expect(verdicts({ recorded: [{ ...PAUSED, isInForce: true }] })).toEqual([expect.stringMatching(/^ok: 3 histories/)]);
  expect(verdicts({ recorded: [{ ...PAUSED, untilAtMs: 5_000 }] })).toEqual([expect.stringMatching(/^ok/)]);
  expect(verdicts({ recorded: [{ ...PAUSED, untilAtMs: 5_001 }] })).toEqual([
    'finding: mutex deploy was paused by ana ("db") from 1970-01-01 00:00:01Z until 1970-01-01 00:00:05Z, and is no longer paused',
  ]);
  const { isInForce: _, ...unseen } = PAUSED;
  expect(verdicts({ recorded: [{ ...unseen, key: "k" }] })).toEqual([
    "unknown: whether mutex deploy (key k) is still paused cannot be seen from this server",
  ]);
  expect(verdicts({ stopped: "late" })).toEqual([expect.stringMatching(/^unknown: .*3 histories.* no time left/)]);
  expect(verdicts({ recorded: Array.from({ length: 13 }, () => PAUSED) })).toHaveLength(11);
  expect(verdicts({}, { role: "slave" })).toEqual(["skipped: a replica"]);
  expect(verdicts({}, { topology: "redlock" })).toEqual([expect.stringMatching(/^skipped: independent servers/)]);
});
