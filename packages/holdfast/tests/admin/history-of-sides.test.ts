/** What the history tells of leases that change sides: a change issues another token, and the hold is the same. */
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
  // What is told is written when it is asked for, and not by time.
  recorder = recordHistory(holdfast, { everyMs: 60_000 });
});
afterEach(async () => {
  await recorder.stop();
  await holdfast.close();
});

/** Held for longer than any test takes. */
const lasting = { leaseMs: 600_000 };

/** What stands there, newest first. */
async function told(): Promise<Awaited<ReturnType<typeof readHistory>>> {
  await recorder.flush();
  return await readHistory(holdfast, { name });
}

async function outcomes(): Promise<string[]> {
  return (await told()).map(({ outcome }) => outcome);
}

/** A reader of which it is known that it reads, and that writes now. */
async function upgraded(options: { leaseMs?: number } = lasting): Promise<ReadWriteLease> {
  const lease = await holdfast.readWriteLock(name).read.acquire({ ...options, label: "tidy" });
  await recorder.flush();
  const { token } = lease;
  expect(await lease.tryUpgrade()).toBe(lease);
  expect(lease.token).toBeGreaterThan(token);
  return lease;
}

test("a reader that becomes a writer is held as before, and ends once, with the token that it had at the end", async () => {
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

test("a writer that reads for a while and writes again is one hold", async () => {
  const lease = await holdfast.readWriteLock(name).write.acquire(lasting);
  expect(await outcomes()).toEqual(["held"]);
  await lease.downgrade();
  expect(await outcomes()).toEqual(["held"]);
  await lease.tryUpgrade();
  expect(await outcomes()).toEqual(["held"]);
  await lease.release();
  expect(await outcomes()).toEqual(["released"]);
});

test("one that is told in one go costs one event, whatever it was in between", async () => {
  const lease = await holdfast.readWriteLock(name).read.acquire(lasting);
  await lease.tryUpgrade();
  const { token } = lease;
  await lease.release();
  expect(await told()).toMatchObject([{ outcome: "released", token }]);
  expect(recorder.appended).toBe(1);
});

test("one whose end nobody told is held as long as the server has it, and expired after", async () => {
  const lease = await upgraded();
  await recorder.stop();
  expect(await outcomes()).toEqual(["held"]);
  await lease.release();
  expect(await outcomes()).toEqual(["expired"]);
});

test("one that is released by force, by the token that it has now, ends once", async () => {
  // It may hear of it by a message, or by its next renewal, which must not be far.
  const lease = await upgraded({});
  const { owner, token } = lease;
  const lost = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
  await holdfast.readWriteLock(name).write.forceRelease({ token, by: "ana", reason: "stuck" });
  await lost;
  await expect(lease.release()).rejects.toThrow(LeaseLostError);
  expect(await told()).toMatchObject([{ outcome: "forced", owner, token, by: "ana", reason: "stuck" }]);
});

test("one that was killed and is released by force ends once, told by whoever did it alone", async () => {
  const lease = await upgraded();
  const { owner, token } = lease;
  // From now on nobody tells of it.
  await recorder.stop();
  await holdfast.readWriteLock(name).write.forceRelease({ owner });
  await appendHistory(holdfast, { what: "forced", kind: "read-write-lock", name, owner, token, by: "ana" });
  expect(await told()).toMatchObject([{ outcome: "forced", owner, token, by: "ana" }]);
});

test("readers at the same time are one hold each, and so is the one that follows them as a writer", async () => {
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
