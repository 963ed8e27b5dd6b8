/** An observer that is told to stop while it waits for the next leader, who may never come. */
import { embedded } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHoldfast, type Holdfast } from "../../src/index.js";

let holdfast: Holdfast;
beforeEach(() => {
  holdfast = createHoldfast({ store: embedded() });
});
afterEach(() => holdfast.close());

const DONE = { done: true, value: undefined };

test("return() ends a next() that waits, and itself", async () => {
  const leaders = holdfast.election("e").observe();
  expect(await leaders.next()).toEqual({ done: false, value: null });
  const waiting = leaders.next();
  expect(await leaders.return()).toEqual(DONE);
  expect(await waiting).toEqual(DONE);
  expect(await leaders.next()).toEqual(DONE);
});

test("return() ends a first next() whose answer is under way", async () => {
  const leaders = holdfast.election("e").observe();
  const waiting = leaders.next();
  expect(await leaders.return()).toEqual(DONE);
  expect([null, undefined]).toContain((await waiting).value);
});

test("return() before any next() asks nothing, and is the end", async () => {
  const leaders = holdfast.election("e").observe();
  expect(await leaders.return()).toEqual(DONE);
  expect(await leaders.next()).toEqual(DONE);
});

test("throw() rejects with what was given, and ends a next() that waits", async () => {
  const leaders = holdfast.election("e").observe();
  await leaders.next();
  const waiting = leaders.next();
  await expect(leaders.throw(new Error("enough"))).rejects.toThrow("enough");
  expect(await waiting).toEqual(DONE);
});

test("a loop that is left stops observing, and another can begin", async () => {
  const election = holdfast.election("e");
  const leadership = await election.campaign("x");
  for await (const leader of election.observe()) {
    expect(leader?.value).toBe("x");
    break;
  }
  await leadership.release();
  for await (const leader of election.observe()) {
    expect(leader).toBeNull();
    break;
  }
});
