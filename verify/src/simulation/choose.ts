import { withBackground } from "./in-background.js";
import { withOnlyKills } from "./kills.js";
import { KINDS, kindOf } from "./kinds/table.js";
import { type Plan, type Profile, planOf } from "./plan.js";
import { withSteals } from "./steals.js";

/**
 * What may go wrong in a run: a profile of faults; only kills; or the faults of "promised" with background releases
 * or steals.
 */
export type Choice = Profile | "kills" | "background" | "steals";

/** All choices. */
export const PROFILES: readonly Choice[] = [
  "none",
  "kills",
  "promised",
  "stalls",
  "background",
  "steals",
  "forgets",
  "clock-forward",
];

/** Two rounds of eight; the second round differs in one entry. */
const EIGHT: readonly Choice[] = ["none", "forgets", "kills", "background", "stalls", "promised", "promised"];
const TURNS: readonly Choice[] = [...EIGHT, "steals", ...EIGHT, "clock-forward"];

/**
 * The plan for a seed. Kind and faults rotate unless given: one seed in eight has no faults, one in eight a server
 * that forgets, one in eight only kills, one in eight only processes that freeze or receive no messages, one in eight
 * background releases, one in sixteen a server whose clock is set forward, and for the read-write lock one in sixteen
 * has steals.
 *
 * @throws RangeError  unknown kind
 */
export function choose(seed: number, kind?: string, profile?: Choice): Plan {
  const chosen = kind ?? KINDS[seed % KINDS.length]?.name ?? "mutex";
  const faults = profile ?? TURNS[Math.floor(seed / KINDS.length) % TURNS.length] ?? "promised";
  if (faults === "kills") return withOnlyKills(planOf(seed, kindOf(chosen).name, "none"));
  if (faults === "background") return withBackground(planOf(seed, kindOf(chosen).name, "promised"));
  if (faults === "steals") return withSteals(planOf(seed, kindOf(chosen).name, "promised"));
  return planOf(seed, kindOf(chosen).name, faults);
}
