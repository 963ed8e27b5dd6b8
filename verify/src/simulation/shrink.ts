/** Reduces a failing run to the parts that it needs to fail in the same way. */
import { type Plan, reduced } from "./plan.js";
import { runPlan } from "./run.js";
import type { Tampering } from "./tampering.js";
import type { Violation } from "./view.js";

/** The longest search, in runs. */
const RUNS_MAX = 400;

/**
 * Delta debugging on the sessions and faults of a plan: first halves, then smaller parts, down to single ones.
 *
 * @returns the smallest plan found that violates a property that the whole plan violates; the same plan if it
 * violates none
 */
export function shrink(plan: Plan, tampering: Tampering = {}): Promise<Plan> {
  const ids = [...plan.sessions, ...plan.faults].map(({ id }) => id);
  return shrunk(plan, ids, reduced, async (part) => (await runPlan(part, tampering)).violations);
}

/**
 * The same for any plan that consists of parts.
 *
 * @param all  the ids of its parts
 * @param reduce  returns the plan with only those parts
 * @param play  returns the properties that a plan violates
 */
export async function shrunk<Whole>(
  plan: Whole,
  all: readonly number[],
  reduce: (plan: Whole, ids: ReadonlySet<number>) => Whole,
  play: (plan: Whole) => Promise<readonly Violation[]>,
): Promise<Whole> {
  const properties = new Set((await play(plan)).map(({ property }) => property));
  if (properties.size === 0) return plan;
  let runs = 0;
  const fails = async (ids: readonly number[]): Promise<boolean> => {
    runs += 1;
    const violations = await play(reduce(plan, new Set(ids)));
    return violations.some(({ property }) => properties.has(property));
  };
  let ids = all;
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
  return reduce(plan, new Set(ids));
}
