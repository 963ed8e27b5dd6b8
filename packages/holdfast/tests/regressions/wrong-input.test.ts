/** Invalid input is rejected at the call, and the error names it. */
import { embedded } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHoldfast, type Holdfast } from "../../src/holdfast.js";

let holdfast: Holdfast;
beforeEach(() => {
  holdfast = createHoldfast({ store: embedded() });
});
afterEach(() => holdfast.close());

/** A value that the compiler has not checked. */
function unchecked(value: unknown): never {
  return value as never;
}

test("a count-down with a misspelled caller id option is rejected and counts nothing", async () => {
  const latch = holdfast.countDownLatch("l");
  await latch.trySetCount(2);
  await expect(latch.countDown(1, unchecked({ callerID: "job 7" }))).rejects.toThrow(/no option "callerID"/);
  expect(await latch.count()).toBe(2);
});

test("every method of an election rejects options that are not an object", async () => {
  const election = holdfast.election("e");
  const wrong = { name: "TypeError", message: "options must be an object; got null" };
  await expect(election.acquire(unchecked(null))).rejects.toMatchObject(wrong);
  await expect(election.tryAcquire(unchecked(null))).rejects.toMatchObject(wrong);
  await expect(election.campaign("v", unchecked(null))).rejects.toMatchObject(wrong);
  await expect(election.run(async () => {}, unchecked(null))).rejects.toMatchObject(wrong);
  await expect(election.observe(unchecked(null)).next()).rejects.toMatchObject(wrong);
  expect(await election.leader()).toBe(null);
});

test("a multi-lock rejects a sparse array of members", () => {
  const members: string[] = [];
  members[1] = "a";
  expect(() => holdfast.multiLock(members)).toThrow(/members\[0\] must be .*; got undefined/);
  expect(() => holdfast.multiLock(unchecked(Object.assign([], { length: 3 })))).toThrow(/members\[0\]/);
});

test("a lease with invalid slots is not adopted", async () => {
  const exported = (await holdfast.semaphore("s", { permits: 2 }).acquire()).export();
  for (const slots of ["abc", null, [0.5], [-1], {}]) {
    await expect(holdfast.adopt({ ...exported, slots: unchecked(slots) })).rejects.toThrow(/slots must be/);
  }
  const adopted = await holdfast.adopt(exported);
  expect(adopted.token).toBe(exported.token);
});

const ACQUIRE = "leaseMs, renew, maxHoldMs, label, waitMs, signal, fairness, throughPause";
const RUN = "release, onReleaseError";
const idle = (): void => {};

test.each<[string, string, () => Promise<unknown>]>([
  ["mutex.acquire", ACQUIRE, () => holdfast.mutex("m").acquire(unchecked({ ttl: 1 }))],
  ["reentrantMutex.acquire", `${ACQUIRE}, within`, () => holdfast.reentrantMutex("m").acquire(unchecked({ ttl: 1 }))],
  [
    "semaphore.acquire",
    `${ACQUIRE}, permits`,
    () => holdfast.semaphore("s", { permits: 2 }).acquire(unchecked({ ttl: 1 })),
  ],
  [
    "semaphore.tryAcquire",
    `${ACQUIRE}, permits`,
    () => holdfast.semaphore("s", { permits: 2 }).tryAcquire(unchecked({ ttl: 1 })),
  ],
  ["election.campaign", `${ACQUIRE}, delayMs`, () => holdfast.election("e").campaign("v", unchecked({ ttl: 1 }))],
  ["election.acquire", `${ACQUIRE}, value, delayMs`, () => holdfast.election("e").acquire(unchecked({ ttl: 1 }))],
  ["election.tryAcquire", `${ACQUIRE}, value`, () => holdfast.election("e").tryAcquire(unchecked({ ttl: 1 }))],
  ["mutex.run", `${ACQUIRE}, ${RUN}`, () => holdfast.mutex("m").run(idle, unchecked({ ttl: 1 }))],
  ["multiLock.run", `${ACQUIRE}, ${RUN}`, () => holdfast.multiLock(["m", "n"]).run(idle, unchecked({ ttl: 1 }))],
  [
    "reentrantMutex.run",
    `${ACQUIRE}, within, ${RUN}`,
    () => holdfast.reentrantMutex("m").run(idle, unchecked({ ttl: 1, within: undefined })),
  ],
  [
    "semaphore.run",
    `${ACQUIRE}, permits, ${RUN}`,
    () => holdfast.semaphore("s", { permits: 2 }).run(idle, unchecked({ ttl: 1, permits: 2 })),
  ],
  [
    "election.run",
    `${ACQUIRE}, value, delayMs, ${RUN}`,
    () => holdfast.election("e").run(idle, unchecked({ ttl: 1, value: "v" })),
  ],
  [
    "barrier.arrive",
    "waitMs, signal, label, leaseMs",
    () => holdfast.barrier("b", { parties: 1 }).arrive(unchecked({ ttl: 1 })),
  ],
  ["countDownLatch.await", "waitMs, signal, label", () => holdfast.countDownLatch("l").await(unchecked({ ttl: 1 }))],
])("for an unknown option, %s lists exactly its own options", async (_what, names, call) => {
  const message = `there is no option "ttl"; the options are ${names}`;
  await expect(call()).rejects.toMatchObject({ name: "TypeError", message });
});

test("run rejects invalid values for its own options, and acquire rejects those options", async () => {
  const mutex = holdfast.mutex("m");
  for (const release of [null, true, "later"]) {
    const message = `release must be "awaited" or "background"; got ${release === "later" ? '"later"' : release}`;
    await expect(mutex.run(idle, unchecked({ release }))).rejects.toMatchObject({ name: "TypeError", message });
  }
  await expect(mutex.run(idle, unchecked({ onReleaseError: "log" }))).rejects.toMatchObject({
    name: "TypeError",
    message: 'onReleaseError must be a function; got "log"',
  });
  for (const options of [null, "background", 5]) {
    await expect(mutex.run(idle, unchecked(options))).rejects.toThrow(/^options must be an object; got /);
  }
  const message = `there is no option "release"; the options are ${ACQUIRE}`;
  for (const call of [mutex.acquire.bind(mutex), mutex.tryAcquire.bind(mutex)]) {
    await expect(call(unchecked({ release: "background" }))).rejects.toMatchObject({ name: "TypeError", message });
  }
});

test.each(["renew", "maxHoldMs", "fairness"])(
  "%s, an option only for leases, is rejected by a barrier and a latch",
  async (option) => {
    const value = { renew: false, maxHoldMs: 1_000, fairness: "strict" }[option];
    const refused = { name: "TypeError", message: expect.stringContaining(`there is no option "${option}"`) };
    await expect(holdfast.barrier("b", { parties: 1 }).arrive(unchecked({ [option]: value }))).rejects.toMatchObject(
      refused,
    );
    await expect(holdfast.countDownLatch("l").await(unchecked({ [option]: value }))).rejects.toMatchObject(refused);
  },
);

test("default options for leases do not affect a barrier or a latch", async () => {
  const other = createHoldfast({ store: embedded(), renew: false, maxHoldMs: 5_000, fairness: "strict" });
  await other.countDownLatch("l").await();
  expect(await other.barrier("b", { parties: 1 }).arrive()).toMatchObject({ index: 0 });
  await other.close();
});

test("options passed to a factory that takes none are rejected, not ignored", () => {
  const given = { leaseMs: 60_000 };
  const expected = /takes .* and nothing else; pass options to acquire and the other methods; got an object/;
  expect(() => (holdfast.readWriteLock as (...all: unknown[]) => unknown)("r", given)).toThrow(expected);
  expect(() => (holdfast.election as (...all: unknown[]) => unknown)("e", given)).toThrow(expected);
  expect(() => (holdfast.multiLock as (...all: unknown[]) => unknown)(["a"], given)).toThrow(expected);
  expect(() => (holdfast.election as (...all: unknown[]) => unknown)("e", undefined)).not.toThrow();
  expect(() => holdfast.mutex("m", unchecked(given))).toThrow('there is no option "leaseMs"; the options are key');
});
