/** Makes a failing run smaller: leaves out what it does not need to fail in the same way. */
import { type Plan, reduced } from "./plan.js";
import { runPlan } from "./run.js";
import type { Tampering } from "./tampering.js";

/** Longest search, in runs. */
const RUNS_MAX = 400;

/**
 * Delta debugging on the sessions and faults of a plan: halves first, then smaller parts, down to single ones.
 *
 * @returns the smallest plan found that still violates a property that the whole one violates; the same if it violates none
 */
export async function shrink(plan: Plan, tampering: Tampering = {}): Promise<Plan> {
  const properties = new Set((await runPlan(plan, tampering)).violations.map(({ property }) => property));
  if (properties.size === 0) return plan;
  let runs = 0;
  const fails = async (ids: readonly number[]): Promise<boolean> => {
    runs += 1;
    const { violations } = await runPlan(reduced(plan, new Set(ids)), tampering);
    return violations.some(({ property }) => properties.has(property));
  };
  let ids = [...plan.sessions, ...plan.faults].map(({ id }) => id);
  for (let size = Math.ceil(ids.length / 2); size >= 1 && runs < RUNS_MAX; ) {
    let isSmaller = false;
    for (let from = 0; from < ids.length && runs < RUNS_MAX; ) {
      const rest = ids.filter((_, place) => place < from || place >= from + size);
      if (rest.length > 0 && rest.length < ids.length && (await fails(rest))) {
        ids = rest;
        isSmaller = true;
      } else from += size;
    }
    if (size === 1 && !isSmaller) break;
    size = size === 1 ? 1 : Math.ceil(size / 2);
  }
  return reduced(plan, new Set(ids));
}
