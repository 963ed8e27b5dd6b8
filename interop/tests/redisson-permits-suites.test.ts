/**
 * Runs the suites of packages/interop/tests/redisson/permits, which also test the model of a Java service, with each
 * release of Redisson itself.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, vi } from "vitest";
import { expirableSuite } from "../../packages/interop/tests/redisson/permits/expirable.suite.js";
import { latchSuite } from "../../packages/interop/tests/redisson/permits/latch.suite.js";
import { semaphoreSuite } from "../../packages/interop/tests/redisson/permits/semaphore.suite.js";
import { type OpenSides, openSides } from "../../packages/interop/tests/redisson/permits/two-sides.js";
import { CONTENTION_MS, ELSEWHERE_MS, tell } from "./contention.js";
import { REDISSONS, startRedisson } from "./peer.js";
import { connect } from "./redisson-peer.js";
import { freshThread } from "./sides.js";

/** A thousand rounds in long runs, where each contention takes a minute. */
const ROUNDS = CONTENTION_MS >= 60_000 ? 1_000 : 100;

vi.setConfig({ testTimeout: CONTENTION_MS + 120_000 });

describe.each(REDISSONS)("with Redisson %s", (version) => {
  let sides: OpenSides;
  beforeAll(async () => {
    sides = await openSides(
      async ({ port }) => {
        const java = startRedisson(version);
        const client = await connect(java, { port });
        // Each verb runs in its own thread, because a verb that waits would block the next one.
        return { peer: { call: (verb, values) => freshThread(client).call(verb, values) }, stop: () => java.stop() };
      },
      // All releases use the same format; the older ones contend only in long runs.
      {
        rounds: ROUNDS,
        contendMs: version === REDISSONS[0] ? CONTENTION_MS : ELSEWHERE_MS,
        tell: (what, report) => tell(`Redisson ${version}, ${what}`, JSON.stringify(report)),
      },
    );
  });
  beforeEach(() => sides.heard());
  afterEach(() => sides.end());
  afterAll(() => sides?.stop());

  describe("a semaphore", () => semaphoreSuite(() => sides));
  describe("a semaphore whose permits expire", () => expirableSuite(() => sides));
  describe("a latch", () => latchSuite(() => sides));
});
