import type { Timed } from "../checker/index.js";
import { groupBy } from "../history/history.js";
import type { Operation } from "../history/records.js";

/** An operation and what the whole history implies about its lease. */
export interface JudgedOperation extends Operation {
  /**
   * Whether a later operation of the owner succeeded that needs this lease, so that the lease cannot have expired
   * in any legal order. Only speeds up the search.
   */
  readonly isKept?: boolean;
}

/** Operations as the checker needs them. An operation with an unknown outcome never returns. */
export function timed(operations: readonly Operation[]): Timed<JudgedOperation>[] {
  const lastNeed = lastNeeds(operations);
  return operations.map((operation) => {
    const { callMs, owner, outcome, verb } = operation;
    const returnMs = outcome === "info" ? Number.POSITIVE_INFINITY : operation.returnMs;
    const neededMs = lastNeed.get(owner) ?? Number.NEGATIVE_INFINITY;
    // A later call that overlaps this operation may have taken effect before it, so it proves nothing. Calls and returns
    // at the same instant overlap, but the owner's only acquire certainly precedes a call that needed its lease.
    const isKept = neededMs > returnMs || (verb === "acquire" && neededMs === returnMs);
    return { callMs, returnMs, value: { ...operation, returnMs, isKept } };
  });
}

/**
 * The time of each owner's last successful call that ended its lease: a full release, or an extend, which starts a new
 * lease. Owners that acquired twice are left out because the call may have needed their other lease.
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

/** Throws because the model does not support the verb. */
export function unknownVerb(model: string, { verb, id }: Operation): never {
  throw new TypeError(`The model "${model}" has no step for "${verb}" (operation ${id})`);
}
