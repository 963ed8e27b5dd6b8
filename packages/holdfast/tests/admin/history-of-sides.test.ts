/** Leases that change sides in the history: a change issues a new token, but the hold stays the same. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { appendHistory, type HistoryRecorder, readHistory, recordHistory } from "../../src/admin/index.js";
import { createHoldfast, type Holdfast, LeaseLostError, type ReadWriteLease } from "../../src/index.js";

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
});
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

const name = "doc";
let holdfast: Holdfast;
let recorder: HistoryRecorder;
beforeEach(() => {
  holdfast = createHoldfast({ redis, prefix: randomUUID(), commandTimeoutMs: 60_000 });
  // The long interval means that entries are written only by `flush` and `stop`.
  recorder = recordHistory(holdfast, { everyMs: 60_000 });
});
afterEach(async () => {
  await recorder.stop();
  await holdfast.close();
});

/** A lease longer than any test. */
const lasting = { leaseMs: 600_000 };

/** The entries, newest first. */
async function told(): Promise<Awaited<ReturnType<typeof readHistory>>> {
  await recorder.flush();
  return await readHistory(holdfast, { name });
}

async function outcomes(): Promise<string[]> {
  return (await told()).map(({ outcome }) => outcome);
}

/** A recorded reader that has been upgraded to a writer. */
async function upgraded(options: { leaseMs?: number } = lasting): Promise<ReadWriteLease> {
  const lease = await holdfast.readWriteLock(name).read.acquire({ ...options, label: "tidy" });
  await recorder.flush();
  const { token } = lease;
  expect(await lease.tryUpgrade()).toBe(lease);
  expect(lease.token).toBeGreaterThan(token);
  return lease;
}

test("a reader that becomes a writer stays one hold and ends once, with its last token", async () => {
  const lease = await upgraded();
  expect(await told()).toMatchObject([{ outcome: "held", owner: lease.owner, label: "tidy" }]);
  const { token } = lease;
  await lease.release();
  const entries = await told();
  expect(entries).toMatchObject([
    { outcome: "released", kind: "read-write-lock", owner: lease.owner, token, label: "tidy" },
  ]);
  expect(entries[0]?.grantedAtMs).toEqual(expect.any(Number));
  expect(entries[0]?.waitedMs).toEqual(expect.any(Number));
  expect(recorder).toMatchObject({ appended: 2, dropped: 0 });
});

test("a writer that downgrades and upgrades again is one hold", async () => {
  const lease = await holdfast.readWriteLock(name).write.acquire(lasting);
  expect(await outcomes()).toEqual(["held"]);
  await lease.downgrade();
  expect(await outcomes()).toEqual(["held"]);
  await lease.tryUpgrade();
  expect(await outcomes()).toEqual(["held"]);
  await lease.release();
  expect(await outcomes()).toEqual(["released"]);
});

test("a hold written in one batch costs one event, even if it changed sides", async () => {
  const lease = await holdfast.readWriteLock(name).read.acquire(lasting);
  await lease.tryUpgrade();
  const { token } = lease;
  await lease.release();
  expect(await told()).toMatchObject([{ outcome: "released", token }]);
  expect(recorder.appended).toBe(1);
});

test("a hold without a recorded end is held while the server has it, then ending", async () => {
  const lease = await upgraded();
  await recorder.stop();
  expect(await outcomes()).toEqual(["held"]);
  await lease.release();
  // The client is alive, so it may still record the release.
  expect(await outcomes()).toEqual(["ending"]);
});

test("a hold that is force-released by its current token ends once", async () => {
  // The holder may learn of the loss from its next renewal, so the lease must be short.
  const lease = await upgraded({});
  const { owner, token } = lease;
  const lost = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
  await holdfast.readWriteLock(name).write.forceRelease({ token, by: "ana", reason: "stuck" });
  await lost;
  await expect(lease.release()).rejects.toThrow(LeaseLostError);
  expect(await told()).toMatchObject([{ outcome: "forced", owner, token, by: "ana", reason: "stuck" }]);
});

test("a force-released hold of a crashed process ends once, recorded only by the releasing program", async () => {
  const lease = await upgraded();
  const { owner, token } = lease;
  // From here on, the holder's process records nothing.
  await recorder.stop();
  await holdfast.readWriteLock(name).write.forceRelease({ owner });
  await appendHistory(holdfast, { what: "forced", kind: "read-write-lock", name, owner, token, by: "ana" });
  expect(await told()).toMatchObject([{ outcome: "forced", owner, token, by: "ana" }]);
});

test("concurrent readers are one hold each, and so is the writer that follows them", async () => {
  const lock = holdfast.readWriteLock(name);
  const [one, other] = [await lock.read.acquire(lasting), await lock.read.acquire(lasting)];
  expect(await outcomes()).toEqual(["held", "held"]);
  await other.release();
  expect((await outcomes()).toSorted()).toEqual(["held", "released"]);
  expect(await one.tryUpgrade()).toBe(one);
  expect((await outcomes()).toSorted()).toEqual(["held", "released"]);
  await one.release();
  await lock.write.run(() => {}, lasting);
  expect(await outcomes()).toEqual(["released", "released", "released"]);
});
