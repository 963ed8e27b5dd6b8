/**
 * How many states a search without a rule needs to find a violation. This decides where the rule is checked: near rules
 * in the tests, far rules for every change, all rules at night. If the search finds nothing within the number of states
 * stated here, the check fails.
 */
import { RULE_STATES } from "./judge.js";
import type { Rule } from "./rule.js";

/** The number of states that is enough for most rules. */
export const NEAR_STATES = 3_000;
/** The number of states that is enough for all rules that are checked for every change. */
export const FAR_STATES = 15_000;

const FAR: ReadonlySet<string> = new Set([
  "extend-compares-owner",
  "queue-once",
  "earliest-grant",
  "recheck",
  "wait-goes-on",
  "signal-first",
  "signal-by-holder",
  "own-release-only",
  "changes-are-numbered",
  "decided-set",
  "count-from-asking",
  "read-the-clock-again",
  "subtract-drift",
  "fresh-claim",
  "permits-confirm-unmarks",
]);
const FARTHEST: ReadonlySet<string> = new Set([
  "signal-skips-the-dead",
  "release-forgets",
  "whole-lease-forgets",
  "release-compares-owner",
  "permits-reap",
  "stale-grant",
  "signal-once",
  "quit-passes-on",
  "pass-on-once",
  "write-back-to-number",
  "own-release-on-a-server",
  "others-are-asked",
  "ask-a-majority",
  "ask-after-the-restart",
  "tell-first",
  "count-who-was-told",
]);

/** The maximum number of states for a search without the rule. */
export function statesFor({ id }: Rule): number {
  if (FARTHEST.has(id)) return RULE_STATES;
  return FAR.has(id) ? FAR_STATES : NEAR_STATES;
}
