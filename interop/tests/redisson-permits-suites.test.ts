/** What a model of a Java service has to show in packages/interop/tests/redisson/permits, with Redisson itself, in each release. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, vi } from "vitest";
import { expirableSuite } from "../../packages/interop/tests/redisson/permits/expirable.suite.js";
import { latchSuite } from "../../packages/interop/tests/redisson/permits/latch.suite.js";
import { semaphoreSuite } from "../../packages/interop/tests/redisson/permits/semaphore.suite.js";
import { type OpenSides, openSides } from "../../packages/interop/tests/redisson/permits/two-sides.js";
import { CONTENTION_MS, ELSEWHERE_MS, tell } from "./contention.js";
import { REDISSONS, startRedisson } from "./peer.js";
import { connect } from "./redisson-peer.js";
import { freshThread } from "./sides.js";

/** A thousand in the long run of a minute for each contention. */
const ROUNDS = CONTENTION_MS >= 60_000 ? 1_000 : 100;

vi.setConfig({ testTimeout: CONTENTION_MS + 120_000 });

describe.each(REDISSONS)("with Redisson %s", (version) => {
  let sides: OpenSides;
  beforeAll(async () => {
    sides = await openSides(
      async ({ port }) => {
        const java = startRedisson(version);
        const client = await connect(java, { port });
        // Verbs that wait must not stand behind each other.
        return { peer: { call: (verb, values) => freshThread(client).call(verb, values) }, stop: () => java.stop() };
      },
      // They all follow one format; the older releases contend for longer in long runs.
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
