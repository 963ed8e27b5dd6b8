/** What is wrong is refused at the call, in words that name it. */
import { embedded } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHoldfast, type Holdfast } from "../../src/holdfast.js";

let holdfast: Holdfast;
beforeEach(() => {
  holdfast = createHoldfast({ store: embedded() });
});
afterEach(() => holdfast.close());

/** What no compiler has checked. */
function unchecked(value: unknown): never {
  return value as never;
}

test("a count-down with a misspelt caller id is refused, and counts nothing", async () => {
  const latch = holdfast.countDownLatch("l");
  await latch.trySetCount(2);
  await expect(latch.countDown(1, unchecked({ callerID: "job 7" }))).rejects.toThrow(/no option "callerID"/);
  expect(await latch.count()).toBe(2);
});

test("every verb of an election refuses options that are no object", async () => {
  const election = holdfast.election("e");
  const wrong = { name: "TypeError", message: "options must be an object; got null" };
  await expect(election.acquire(unchecked(null))).rejects.toMatchObject(wrong);
  await expect(election.tryAcquire(unchecked(null))).rejects.toMatchObject(wrong);
  await expect(election.campaign("v", unchecked(null))).rejects.toMatchObject(wrong);
  await expect(election.run(async () => {}, unchecked(null))).rejects.toMatchObject(wrong);
  await expect(election.observe(unchecked(null)).next()).rejects.toMatchObject(wrong);
  expect(await election.leader()).toBe(null);
});

test("a hole among the members of a multi-lock is refused", () => {
  const members: string[] = [];
  members[1] = "a";
  expect(() => holdfast.multiLock(members)).toThrow(/members\[0\] must be .*; got undefined/);
  expect(() => holdfast.multiLock(unchecked(Object.assign([], { length: 3 })))).toThrow(/members\[0\]/);
});

test("a lease whose numbers are none is not adopted", async () => {
  const exported = (await holdfast.semaphore("s", { permits: 2 }).acquire()).export();
  for (const slots of ["abc", null, [0.5], [-1], {}]) {
    await expect(holdfast.adopt({ ...exported, slots: unchecked(slots) })).rejects.toThrow(/slots must be/);
  }
  const adopted = await holdfast.adopt(exported);
  expect(adopted.token).toBe(exported.token);
});
