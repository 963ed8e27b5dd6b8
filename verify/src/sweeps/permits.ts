import { groupBy, type History } from "../history/history.js";
import type { Operation } from "../history/records.js";
import { claimsByLock, type LeaseClaim, sweepOverlaps } from "./claims.js";
import { Findings, type SweepResult } from "./result.js";

/**
 * X1: the number of permits that holders rely on at one instant never exceeds the limit.
 *
 * They can exceed it only when a lease begins. The limit is the largest one that may have been in force while that
 * lease was requested, because a smaller limit takes no permits away.
 *
 * Figure `most`: the maximum number of permits at one instant.
 *
 * @param limits  the initial limit of each lock; other locks are not checked
 */
export function permitsWithinLimit(history: History, limits: ReadonlyMap<string, number>): SweepResult {
  const findings = new Findings("X1");
  const resizes = groupBy(
    history.operations.filter(({ verb, outcome }) => verb === "resize" && outcome !== "no"),
    nameOf,
  );
  for (const [name, claims] of claimsByLock(history, new Set(["semaphore"]))) {
    const initial = limits.get(name);
    if (initial === undefined) continue;
    const timeline = limitsOf(initial, resizes.get(name) ?? []);
    sweepOverlaps(claims, (claim, running) => {
      const used = running.reduce((sum, other) => sum + permitsOf(other), permitsOf(claim));
      const limit = largest(timeline, claim.lease.acquire);
      findings.most("most", used);
      findings.decide(
        name,
        [...running, claim].map(({ lease }) => lease.acquire),
        used > limit ? `"${name}" has ${used} permits out of ${limit}` : undefined,
      );
    });
  }
  return findings.result();
}

function nameOf({ lockName }: Operation): string {
  return lockName;
}

function permitsOf({ lease }: LeaseClaim): number {
  return lease.acquire.args.permits ?? 1;
}

interface LimitSpan {
  readonly limit: number;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** When each limit may have been in force: from the call that set it to the return of the next effective change. */
function limitsOf(initial: number, resizes: readonly Operation[]): LimitSpan[] {
  const untilMs = (fromMs: number): number =>
    resizes
      .filter(({ outcome, callMs }) => outcome === "ok" && callMs > fromMs)
      .reduce((first, { returnMs }) => Math.min(first, returnMs), Number.POSITIVE_INFINITY);
  const begin = Number.NEGATIVE_INFINITY;
  return [
    { limit: initial, fromMs: begin, untilMs: untilMs(begin) },
    ...resizes.map(({ args, callMs, returnMs, outcome }) => ({
      limit: args.permits ?? initial,
      fromMs: callMs,
      // A later limit cannot have replaced it before it has certainly taken effect.
      untilMs: untilMs(outcome === "ok" ? returnMs : Number.POSITIVE_INFINITY),
    })),
  ];
}

function largest(timeline: readonly LimitSpan[], { callMs, returnMs }: Operation): number {
  return timeline
    .filter(({ fromMs, untilMs }) => fromMs <= returnMs && untilMs >= callMs)
    .reduce((most, { limit }) => Math.max(most, limit), 0);
}
