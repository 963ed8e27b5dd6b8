/** For exclusion only: how long a peer counts as holding if it never reports a validity. Not used for Holdfast. */
import { groupBy, type History } from "../../history/history.js";
import type { Operation } from "../../history/records.js";
import type { SweepResult } from "../../sweeps/index.js";

/**
 * Runs an exclusion sweep on a history in which each lease without a reported validity lasts from its grant until its
 * holder last reported it as held, or until its release was called if it was never asked.
 *
 * If a subject reports a validity anywhere, its history is used unchanged. Other sweeps must not use this, because a
 * lease cannot be used past an end that was never reported.
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
  // A picture marks the original records of the history that it shows.
  const violations = result.violations.map((violation) => ({
    ...violation,
    records: violation.records.map((record) => given.get(record) ?? record),
  }));
  return { ...result, violations };
}
