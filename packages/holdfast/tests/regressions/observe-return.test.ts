/** An observer that is stopped while it waits for the next leader. */
import { embedded } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createHoldfast, type Holdfast } from "../../src/index.js";

let holdfast: Holdfast;
beforeEach(() => {
  holdfast = createHoldfast({ store: embedded() });
});
afterEach(() => holdfast.close());

const DONE = { done: true, value: undefined };

test("return() ends a pending next() and the iterator", async () => {
  const leaders = holdfast.election("e").observe();
  expect(await leaders.next()).toEqual({ done: false, value: null });
  const waiting = leaders.next();
  expect(await leaders.return()).toEqual(DONE);
  expect(await waiting).toEqual(DONE);
  expect(await leaders.next()).toEqual(DONE);
});

test("return() ends a first next() whose request is in flight", async () => {
  const leaders = holdfast.election("e").observe();
  const waiting = leaders.next();
  expect(await leaders.return()).toEqual(DONE);
  expect([null, undefined]).toContain((await waiting).value);
});

test("return() before any next() ends the iterator", async () => {
  const leaders = holdfast.election("e").observe();
  expect(await leaders.return()).toEqual(DONE);
  expect(await leaders.next()).toEqual(DONE);
});

test("throw() rejects with the given error and ends a pending next()", async () => {
  const leaders = holdfast.election("e").observe();
  await leaders.next();
  const waiting = leaders.next();
  await expect(leaders.throw(new Error("enough"))).rejects.toThrow("enough");
  expect(await waiting).toEqual(DONE);
});

test("breaking out of a loop stops observing, and another loop can begin", async () => {
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
