import { groupBy, type History } from "../../history/history.js";
import type { Operation } from "../../history/records.js";
import { dueAt, killsOf, lastInstant } from "../../sweeps/faults.js";
import { showMs } from "../../sweeps/result.js";
import type { Found } from "./found.js";

/**
 * L3: when a lock is given back and somebody waits, somebody is granted it within the poll.
 *
 * A release is judged if one waiter was there before it and still waits when the grant is due, or if a grant came.
 * Exclusive locks only: of others a release need not let anybody in.
 */
export function noLostWakeUp(
  history: History,
  { withinMs, forbidding }: { readonly withinMs: number; readonly forbidding: ReadonlySet<string> },
): { readonly found: Found[]; readonly checked: number; readonly slowestMs: number } {
  const found: Found[] = [];
  let checked = 0;
  let slowestMs = 0;
  const endMs = lastInstant(history);
  const diedMs = new Map(killsOf(history).map(({ process, atMs }) => [process, atMs]));
  const goneMs = ({ returnMs, process }: Operation): number => Math.min(returnMs, diedMs.get(process) ?? endMs, endMs);
  for (const [lockName, all] of groupBy(history.operations, (operation) => operation.lockName)) {
    const acquires = all.filter(({ verb, kind }) => verb === "acquire" && isExclusive(kind));
    const grants = acquires.filter(({ outcome }) => outcome === "ok").sort((a, b) => a.returnMs - b.returnMs);
    const releases = all.filter(({ verb, outcome }) => verb === "release" && outcome === "ok");
    for (const release of releases) {
      const waiters = acquires.filter(
        (waiter) => waiter.callMs < release.callMs && goneMs(waiter) > release.returnMs && waiter.args.waitMs !== 0,
      );
      if (waiters.length === 0) continue;
      const next = grants.find(({ returnMs }) => returnMs > release.callMs);
      const dueMs = dueAt(history, forbidding, release.returnMs, withinMs);
      const grantedMs = next?.returnMs ?? Number.POSITIVE_INFINITY;
      const stuck = grantedMs > dueMs ? waiters.find((waiter) => goneMs(waiter) > dueMs) : undefined;
      if (next === undefined && stuck === undefined) continue;
      checked += 1;
      if (next !== undefined) slowestMs = Math.max(slowestMs, next.returnMs - release.returnMs);
      if (stuck === undefined) continue;
      const message = `"${lockName}" was free and granted to nobody by ${showMs(dueMs)}, while ${stuck.owner} waited`;
      found.push({ property: "L3", lockName, message, records: [release, stuck] });
    }
  }
  return { found, checked, slowestMs };
}

function isExclusive(kind: Operation["kind"]): boolean {
  return kind === "mutex" || kind === "reentrant-mutex" || kind === "multi-lock";
}
