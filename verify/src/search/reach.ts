/**
 * How far from the beginning of its world a rule is missed, which decides who searches for it: the tests what is near,
 * every change what is not farther than that, and the nights everything. A rule that is not found where this says so
 * fails, instead of being left out.
 */
import { RULE_STATES } from "./judge.js";
import type { Rule } from "./rule.js";

/** States within which most rules are missed. */
export const NEAR_STATES = 3_000;
/** States within which those are missed that a change is still judged by. */
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

/** How many states a search without the rule may take. */
export function statesFor({ id }: Rule): number {
  if (FARTHEST.has(id)) return RULE_STATES;
  return FAR.has(id) ? FAR_STATES : NEAR_STATES;
}
