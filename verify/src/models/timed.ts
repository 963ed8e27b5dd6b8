import type { Timed } from "../checker/index.js";
import { groupBy } from "../history/history.js";
import type { Operation } from "../history/records.js";

/** An operation with what the whole history says of the lease it gives. */
export interface JudgedOperation extends Operation {
  /**
   * Whether its owner certainly succeeded with something later that needs this very lease, so that in no legal order
   * it ended by itself. Only spares the search what it would find out much later.
   */
  readonly isKept?: boolean;
}

/** Operations as the checker wants them: one of unknown outcome never returns, whatever its caller saw. */
export function timed(operations: readonly Operation[]): Timed<JudgedOperation>[] {
  const lastNeed = lastNeeds(operations);
  return operations.map((operation) => {
    const { callMs, owner, outcome } = operation;
    const returnMs = outcome === "info" ? Number.POSITIVE_INFINITY : operation.returnMs;
    // What overlaps may have come before it, and says nothing then.
    const isKept = (lastNeed.get(owner) ?? Number.NEGATIVE_INFINITY) > returnMs;
    return { callMs, returnMs, value: { ...operation, returnMs, isKept } };
  });
}

/**
 * When each owner last called something that needed its lease and put an end to it: a release of all, or an extend,
 * which begins another. Owners that acquire again are left out, since what they needed may be the other lease.
 */
function lastNeeds(operations: readonly Operation[]): Map<string, number> {
  const needs = new Map<string, number>();
  for (const [owner, own] of groupBy(operations, (operation) => operation.owner)) {
    const acquires = own.filter(
      ({ verb, outcome, refusal }) => verb === "acquire" && (outcome !== "no" || refusal === "gave-up"),
    );
    const [acquire] = acquires;
    if (acquire === undefined || acquires.length > 1) continue;
    for (const { verb, outcome, callMs, args } of own) {
      const endsIt = verb === "extend" || (verb === "release" && (args.permits ?? 1) >= (acquire.args.permits ?? 1));
      if (outcome === "ok" && endsIt) needs.set(owner, Math.max(callMs, needs.get(owner) ?? callMs));
    }
  }
  return needs;
}

/** The answer to a verb that a model does not know. */
export function unknownVerb(model: string, { verb, id }: Operation): never {
  throw new TypeError(`The model "${model}" has no step for "${verb}" (operation ${id})`);
}
