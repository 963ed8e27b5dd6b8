/** How long a peer counts as holding that never says until when: for exclusion only, and never of this library. */
import { groupBy, type History } from "../../history/history.js";
import type { Operation } from "../../history/records.js";
import type { SweepResult } from "../../sweeps/index.js";

/**
 * What a sweep of exclusion says of a history in which each lease without a stated validity lasts from its grant until
 * its holder last said that it is held; until its release was called, if it was never asked.
 *
 * A subject that states a validity anywhere is judged by that, and its history as it is. Other sweeps must not be given
 * such a history: an end that was never stated cannot have been passed.
 */
export function asSaid(history: History, sweep: (history: History) => SweepResult): SweepResult {
  const { operations } = history;
  if (operations.some(({ validUntilMs }) => validUntilMs !== null)) return sweep(history);
  const samples = groupBy(history.held, ({ leaseId }) => leaseId);
  const releases = new Map(
    operations.filter(({ verb }) => verb === "release").map(({ leaseId, callMs }) => [leaseId, callMs]),
  );
  const endOf = ({ id }: Operation): number | null => {
    const own = samples.get(id);
    if (own === undefined) return releases.get(id) ?? null;
    return own.reduce<number | null>((last, { isHeld, atMs }) => (isHeld ? Math.max(last ?? atMs, atMs) : last), null);
  };
  const given = new Map<object, Operation>();
  const said = operations.map((operation) => {
    if (operation.verb !== "acquire" || operation.outcome !== "ok") return operation;
    const changed = { ...operation, validUntilMs: endOf(operation) };
    given.set(changed, operation);
    return changed;
  });
  const result = sweep({ ...history, operations: said });
  // A picture marks the very records of the history that it is drawn from.
  const violations = result.violations.map((violation) => ({
    ...violation,
    records: violation.records.map((record) => given.get(record) ?? record),
  }));
  return { ...result, violations };
}
