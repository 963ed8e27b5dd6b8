import { withBackground } from "./in-background.js";
import { withOnlyKills } from "./kills.js";
import { KINDS, kindOf } from "./kinds/table.js";
import { type Plan, type Profile, planOf } from "./plan.js";
import { withSteals } from "./steals.js";

/** What may go wrong in a run: a profile of faults, kills alone, or, among the faults of "promised", releases in the background or steals. */
export type Choice = Profile | "kills" | "background" | "steals";

/** All of them. */
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

/** Twice round eight, of which the second has something else in one place. */
const EIGHT: readonly Choice[] = ["none", "forgets", "kills", "background", "stalls", "promised", "promised"];
const TURNS: readonly Choice[] = [...EIGHT, "steals", ...EIGHT, "clock-forward"];

/**
 * The run of a seed, whose kind and faults take turns where the caller does not say: one seed in eight has no faults, one
 * in eight a server that forgets, one in eight only processes that are killed, one in eight only processes that stand still
 * or are deaf, one in eight releases in the background, one in sixteen a server whose clock is set forward, and of the
 * read-write lock one in sixteen steals.
 *
 * @throws RangeError  there is no such kind
 */
export function choose(seed: number, kind?: string, profile?: Choice): Plan {
  const chosen = kind ?? KINDS[seed % KINDS.length]?.name ?? "mutex";
  const faults = profile ?? TURNS[Math.floor(seed / KINDS.length) % TURNS.length] ?? "promised";
  if (faults === "kills") return withOnlyKills(planOf(seed, kindOf(chosen).name, "none"));
  if (faults === "background") return withBackground(planOf(seed, kindOf(chosen).name, "promised"));
  if (faults === "steals") return withSteals(planOf(seed, kindOf(chosen).name, "promised"));
  return planOf(seed, kindOf(chosen).name, faults);
}
