/** The rules for leases on a quorum. R and K number Redlock's published rules and the arguments against Redlock. */
import { type Rule, rulesOf } from "./rule.js";
import { type TimedSetting, TimedWorld } from "./timed-world.js";

/** A world of clients and servers; the clocks of some servers may gain a tick. */
export function timed(
  clients: readonly number[],
  fast: number,
  restarts: number = 0,
  servers: number = 3,
): TimedSetting {
  return { clients, servers, restarts, fast };
}

const ONE_EACH = [1, 1] as const;

const { script, client } = rulesOf(TimedWorld, "Q5–Q7");

/** The list of rules. */
export const TIMED_RULES: readonly Rule[] = [
  script("one-holder-a-server", "a server that is held grants to nobody else", timed(ONE_EACH, 0), {
    script: "redlock/acquire",
    from: "if holder and holder ~= owner then",
    to: "if false then",
  }),
  script("own-release-on-a-server", "a release ends only the attempt's own hold on a server", timed([2, 1], 0), {
    script: "redlock/release",
    from: "if redis.call('GET', KEYS[1]) ~= owner then",
    to: "if false then",
  }),
  client("more-than-half", "a lease needs more than half of the servers", timed(ONE_EACH, 0)),
  client("count-from-asking", "a lease counts from before the first request (R2)", timed(ONE_EACH, 0)),
  client("read-the-clock-again", "the clock is read again when the majority has answered (R4, K6)", timed(ONE_EACH, 0)),
  client("subtract-drift", "the allowed clock drift is subtracted (R5)", timed(ONE_EACH, 1)),
  client("keep-out", "a server that has restarted is kept out for the longest lease (R11)", timed(ONE_EACH, 0, 1)),
  client("look-at-the-clock", "a holder checks its clock (K1)", timed(ONE_EACH, 0)),
];
