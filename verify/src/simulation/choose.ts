import { KINDS, kindOf } from "./kinds/table.js";
import { type Plan, type Profile, planOf } from "./plan.js";

/** All profiles of faults. */
export const PROFILES: readonly Profile[] = ["none", "promised", "forgets", "clock-forward"];

/**
 * The run of a seed, whose kind and faults take turns where the caller does not say: one seed in eight has no faults,
 * and one in eight a server that forgets.
 *
 * @throws RangeError  there is no such kind
 */
export function choose(seed: number, kind?: string, profile?: Profile): Plan {
  const chosen = kind ?? KINDS[seed % KINDS.length]?.name ?? "mutex";
  const turn = Math.floor(seed / KINDS.length) % 8;
  const faults = profile ?? (turn === 0 ? "none" : turn === 1 ? "forgets" : "promised");
  return planOf(seed, kindOf(chosen).name, faults);
}
