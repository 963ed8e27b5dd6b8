import { withOnlyKills } from "./kills.js";
import { KINDS, kindOf } from "./kinds/table.js";
import { type Plan, type Profile, planOf } from "./plan.js";

/** What may go wrong in a run: a profile of faults, or kills alone. */
export type Choice = Profile | "kills";

/** All of them. */
export const PROFILES: readonly Choice[] = ["none", "kills", "promised", "stalls", "forgets", "clock-forward"];

/** Twice round eight, of which the second has something else in one place. */
const EIGHT: readonly Choice[] = ["none", "forgets", "kills", "promised", "stalls", "promised", "promised"];
const TURNS: readonly Choice[] = [...EIGHT, "promised", ...EIGHT, "clock-forward"];

/**
 * The run of a seed, whose kind and faults take turns where the caller does not say: one seed in eight has no faults, one
 * in eight a server that forgets, one in eight only processes that are killed, one in eight only processes that stand still
 * or are deaf, and one in sixteen a server whose clock is set forward.
 *
 * @throws RangeError  there is no such kind
 */
export function choose(seed: number, kind?: string, profile?: Choice): Plan {
  const chosen = kind ?? KINDS[seed % KINDS.length]?.name ?? "mutex";
  const faults = profile ?? TURNS[Math.floor(seed / KINDS.length) % TURNS.length] ?? "promised";
  if (faults === "kills") return withOnlyKills(planOf(seed, kindOf(chosen).name, "none"));
  return planOf(seed, kindOf(chosen).name, faults);
}
