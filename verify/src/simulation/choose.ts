import { withOnlyKills } from "./kills.js";
import { KINDS, kindOf } from "./kinds/table.js";
import { type Plan, type Profile, planOf } from "./plan.js";

/** What may go wrong in a run: a profile of faults, or kills alone. */
export type Choice = Profile | "kills";

/** All of them. */
export const PROFILES: readonly Choice[] = ["none", "kills", "promised", "forgets", "clock-forward"];

/**
 * The run of a seed, whose kind and faults take turns where the caller does not say: one seed in eight has no faults, one
 * in eight a server that forgets, and one in eight only processes that are killed.
 *
 * @throws RangeError  there is no such kind
 */
export function choose(seed: number, kind?: string, profile?: Choice): Plan {
  const chosen = kind ?? KINDS[seed % KINDS.length]?.name ?? "mutex";
  const turn = Math.floor(seed / KINDS.length) % 8;
  const faults = profile ?? (turn === 0 ? "none" : turn === 1 ? "forgets" : turn === 2 ? "kills" : "promised");
  if (faults === "kills") return withOnlyKills(planOf(seed, kindOf(chosen).name, "none"));
  return planOf(seed, kindOf(chosen).name, faults);
}
