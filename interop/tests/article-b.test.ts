/** Defects of the PHP lock of article B, each shown with the real program. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { type Peer, startArticleB } from "./peer.js";

const LEASE_S = 3;
/** A stopped clock must be set to the present, because this protocol also uses expiry on the server. */
const AT_S = Math.floor(Date.now() / 1_000);

interface Attempt {
  readonly isHeld: boolean;
  /** Result codes: 0 acquired, 1 gone, 2 still valid, 3 taken in the meantime. */
  readonly codes: readonly number[];
}

let redis: RedisServer;
let folder: string;
let count = 0;
const peers: Peer[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-log-"));
  redis = await startRedis({ args: ["--loglevel", "debug", "--logfile", join(folder, "redis.log")] });
});
afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.kill()));
});
afterAll(async () => {
  await redis.stop();
  await rm(folder, { recursive: true, force: true });
});

function article(settings: { clockAheadMs?: number; clockAtMs?: number } = {}): Peer {
  const peer = startArticleB({ port: redis.port, ...settings });
  peers.push(peer);
  return peer;
}

function lock(): string {
  count += 1;
  return `lock_goods:${count}`;
}

const nowS = (): number => Math.floor(Date.now() / 1_000);
const HELD = { isHeld: true, codes: [0] };
const REFUSED = { isHeld: false, codes: [2, 2, 2] };

test("B1: a lock that is released immediately stays until its expiry", async () => {
  const name = lock();
  const one = article();
  expect(await one.call<Attempt>("lock", { name })).toEqual(HELD);
  expect(await one.call("unlock", { name })).toBe(true);
  expect(Number(await redis.command("PTTL", name))).toBeGreaterThan(0);
  expect(Number(await redis.command("PTTL", name))).toBeLessThanOrEqual((LEASE_S + 1) * 1_000);
});

test("B2, B3: three attempts in all, and the pause between them is rounded to zero", async () => {
  const name = lock();
  await redis.command("SET", name, nowS() + 1_000);
  const one = article();
  const before = (await redis.commandStats()).eval ?? 0;
  expect(await one.call<Attempt>("lock", { name })).toEqual(REFUSED);
  expect(((await redis.commandStats()).eval ?? 0) - before).toBe(3);
  expect(one.complaints).toContain("Implicit conversion from float 0.3 to int");
});

test("B4, B8: a takeover from a holder that overruns writes a deadline after the expiry of the key", async () => {
  const name = lock();
  await article({ clockAtMs: AT_S * 1_000 }).call("lock", { name });
  await redis.command("SET", name, AT_S - 10);
  expect(await article({ clockAtMs: AT_S * 1_000 }).call<Attempt>("lock", { name })).toEqual(HELD);
  expect(await redis.command("GET", name)).toBe(`${AT_S + 2 * (LEASE_S + 1)}`);
  expect(Number(await redis.command("TTL", name))).toBeLessThanOrEqual(LEASE_S + 1);
});

test("B5: it throws if the value is not a number", async () => {
  const name = lock();
  await redis.command("SET", name, "held by somebody");
  await expect(article().call("lock", { name })).rejects.toMatchObject({ kind: "RedisException" });
});

test.each([
  [3, false],
  [4, true],
])("B6: a clock that is %d s ahead of a lock just taken steals it: %s", async (aheadS, isHeld) => {
  const name = lock();
  await article({ clockAtMs: AT_S * 1_000 }).call("lock", { name });
  await redis.command("PERSIST", name);
  const other = article({ clockAtMs: (AT_S + aheadS) * 1_000 });
  expect(await other.call<Attempt>("lock", { name })).toMatchObject({ isHeld });
});

test("B7: while an expired key still exists, any client may delete it with an unlock or take it", async () => {
  const [name, other] = [lock(), lock()];
  for (const each of [name, other]) await redis.command("SET", each, AT_S, "PX", 500_000);
  expect(await article({ clockAtMs: AT_S * 1_000 }).call("unlock", { name })).toBe(true);
  expect(await redis.command("EXISTS", name)).toBe(0);
  expect(await article({ clockAtMs: AT_S * 1_000 }).call<Attempt>("lock", { name: other })).toEqual(HELD);
});

test("B9: two clients write the same value in one second", async () => {
  const [one, other] = [lock(), lock()];
  await article({ clockAtMs: AT_S * 1_000 }).call("lock", { name: one });
  await article({ clockAtMs: AT_S * 1_000 + 999 }).call("lock", { name: other });
  expect(await redis.command("GET", one)).toBe(await redis.command("GET", other));
});

test("B10: with a hash tag it is another lock", async () => {
  const name = lock();
  const [, number] = name.split(":");
  expect(await article().call<Attempt>("lock", { name })).toEqual(HELD);
  expect(await article().call<Attempt>("lock", { name: `{lock_goods}:${number}` })).toEqual(HELD);
});

test("B11: a script is one step, so it never reports that the key disappeared or was taken meanwhile", async () => {
  const name = lock();
  const contenders = [article(), article(), article()];
  const codes = new Set<number>();
  for (let round = 0; round < 30; round += 1) {
    await redis.command("SET", name, nowS() - 10);
    const attempts = await Promise.all(contenders.map((each) => each.call<Attempt>("lock", { name })));
    expect(attempts.filter(({ isHeld }) => isHeld)).toHaveLength(1);
    for (const each of attempts) for (const code of each.codes) codes.add(code);
  }
  expect(codes).toEqual(new Set([0, 2]));
});

test("B12: its unlock deletes an expired lock of another protocol", async () => {
  const name = lock();
  await redis.command("SET", name, nowS() - 10);
  await article().call("unlock", { name });
  expect(await redis.command("EXISTS", name)).toBe(0);
});

test("its acquire script writes to the log of the server, and its release script does not", async () => {
  const name = lock();
  const one = article({ clockAtMs: AT_S * 1_000 });
  await one.call("lock", { name });
  await redis.command("PERSIST", name);
  await one.call("lock", { name });
  const before = await log();
  expect(before.at(0)).toContain("[申请加锁] start");
  expect(before).toEqual(expect.arrayContaining([expect.stringContaining("not expired, sleep")]));
  await one.call("unlock", { name });
  expect(await log()).toEqual(before);
});

async function log(): Promise<string[]> {
  const text = await readFile(join(folder, "redis.log"), "utf8");
  return text.split("\n").filter((line) => line.includes("[申请加锁]"));
}
