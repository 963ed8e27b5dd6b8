import { groupBy, type History } from "../../history/history.js";
import type { Operation } from "../../history/records.js";
import { EXPIRY } from "../../models/index.js";
import { besides, isShared } from "../../sweeps/beside.js";
import { EXCLUSIVE } from "../../sweeps/claims.js";
import { dueAt, killsOf, lastInstant } from "../../sweeps/faults.js";
import { showMs } from "../../sweeps/result.js";
import type { Found } from "./found.js";

/**
 * L3: when a lock is released while a caller waits, a caller is granted it within the polling interval.
 *
 * A release is judged if a waiter was there before it and still waits when the grant is due, or if there was a grant.
 * For kinds with several holders, the grant is due when all other holders have released or ended: then any waiter
 * fits.
 */
export function noLostWakeUp(
  history: History,
  { withinMs, forbidding }: { readonly withinMs: number; readonly forbidding: ReadonlySet<string> },
): { readonly found: Found[]; readonly checked: number; readonly slowestMs: number } {
  const found: Found[] = [];
  let checked = 0;
  let slowestMs = 0;
  const endMs = lastInstant(history);
  const besideUntil = besides(history, EXPIRY.rho);
  const diedMs = new Map(killsOf(history).map(({ process, atMs }) => [process, atMs]));
  const goneMs = ({ returnMs, process }: Operation): number => Math.min(returnMs, diedMs.get(process) ?? endMs, endMs);
  for (const [lockName, all] of groupBy(history.operations, (operation) => operation.lockName)) {
    const acquires = all.filter(({ verb, kind }) => verb === "acquire" && (EXCLUSIVE.has(kind) || isShared(kind)));
    const grants = acquires.filter(({ outcome }) => outcome === "ok").sort((a, b) => a.returnMs - b.returnMs);
    const releases = all.filter(({ verb, outcome }) => verb === "release" && outcome === "ok");
    for (const release of releases) {
      const waiters = acquires.filter(
        (waiter) => waiter.callMs < release.callMs && goneMs(waiter) > release.returnMs && waiter.args.waitMs !== 0,
      );
      if (waiters.length === 0) continue;
      const next = grants.find(({ returnMs }) => returnMs > release.callMs);
      const grantedMs = next?.returnMs ?? Number.POSITIVE_INFINITY;
      // With thousands of waiters each of these checks is expensive, and a grant in time makes them unnecessary.
      const soonestMs = release.returnMs + withinMs;
      const patient = grantedMs > soonestMs ? waiters.filter((waiter) => goneMs(waiter) > soonestMs) : [];
      const due = patient.map((waiter) => {
        const freeMs = isShared(release.kind) ? besideUntil(release, waiter) : release.returnMs;
        return { waiter, dueMs: dueAt(history, forbidding, Math.max(release.returnMs, freeMs), withinMs) };
      });
      const late = due.find(({ waiter, dueMs }) => grantedMs > dueMs && goneMs(waiter) > dueMs);
      const stuck = late?.waiter;
      if (next === undefined && stuck === undefined) continue;
      checked += 1;
      if (next !== undefined) slowestMs = Math.max(slowestMs, next.returnMs - release.returnMs);
      if (late === undefined || stuck === undefined) continue;
      const message = `"${lockName}" was free, but still not granted at ${showMs(late.dueMs)}, while ${stuck.owner} waited`;
      found.push({ property: "L3", lockName, message, records: [release, stuck] });
    }
  }
  return { found, checked, slowestMs };
}
