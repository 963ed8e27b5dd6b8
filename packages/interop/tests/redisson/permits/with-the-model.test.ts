/** Redisson's semaphores and latches, shared with a model of the Java side that is written from the reference. */
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { expirableSuite } from "./expirable.suite.js";
import { latchSuite } from "./latch.suite.js";
import { semaphoreSuite } from "./semaphore.suite.js";
import { type OpenSides, openSides } from "./two-sides.js";

let sides: OpenSides;
beforeAll(async () => {
  sides = await openSides();
});
beforeEach(() => sides.heard());
afterEach(() => sides.end());
afterAll(() => sides?.stop());

describe("a semaphore", () => semaphoreSuite(() => sides));
describe("a semaphore whose permits expire", () => expirableSuite(() => sides));
describe("a latch", () => latchSuite(() => sides));
