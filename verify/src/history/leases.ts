/**
 * What each holder may have relied on, and when, as the sweeps over a whole history need it.
 *
 * A lease is relied upon from the return of its acquire until it is released, `validUntilMs` is over, or it said itself
 * that it was over, as when a clock went forward. Each later word of its `validUntilMs` (an extend, or a sample that says
 * it is held) prolongs that.
 */
import { groupBy, type History } from "./history.js";
import type { Held, Mode, Operation } from "./records.js";

/** A time in which a holder relied on its lease, in one mode. */
export interface Claim {
  readonly startMs: number;
  readonly endMs: number;
  /** Undefined for kinds that have none. */
  readonly mode: Mode | undefined;
}

/** All that a history says of one granted lease. */
export interface Lease {
  readonly acquire: Operation;
  /** Operations on it after the grant, in the order of their calls. */
  readonly later: readonly Operation[];
  readonly samples: readonly Held[];
  /** When its end began: the first call of a release, or of a forced one that succeeded. Infinity if there is none. */
  readonly releasedMs: number;
  /** The last word on how long it is valid; its return if nothing was said. */
  readonly validUntilMs: number;
  /** In the order of time, without overlap. */
  readonly claims: readonly Claim[];
}

/** The leases of all acquires that are known to be granted, in the order in which the acquires were called. */
export function leasesOf(history: History): Lease[] {
  const byLease = groupBy(history.operations, ({ leaseId }) => leaseId);
  const samplesOf = groupBy(history.held, ({ leaseId }) => leaseId);
  const lostOf = new Map(history.lost.map(({ leaseId, atMs }) => [leaseId, atMs]));
  return history.operations
    .filter(({ verb, outcome }) => verb === "acquire" && outcome === "ok")
    .map((acquire) => {
      const later = (byLease.get(acquire.id) ?? []).filter(({ id }) => id !== acquire.id);
      return leaseOf(
        acquire,
        later.sort((a, b) => a.callMs - b.callMs),
        (samplesOf.get(acquire.id) ?? []).toSorted((a, b) => a.atMs - b.atMs),
        lostOf.get(acquire.id) ?? Number.POSITIVE_INFINITY,
      );
    })
    .sort((a, b) => a.acquire.callMs - b.acquire.callMs);
}

function leaseOf(acquire: Operation, later: readonly Operation[], samples: readonly Held[], lostMs: number): Lease {
  const releasedMs = later.reduce((first, operation) => Math.min(first, endedAt(operation)), Number.POSITIVE_INFINITY);
  const spans = [
    { startMs: acquire.returnMs, endMs: acquire.validUntilMs ?? acquire.returnMs },
    ...later
      .filter(({ verb, outcome, validUntilMs }) => verb !== "acquire" && outcome === "ok" && validUntilMs !== null)
      .map(({ returnMs, validUntilMs }) => ({ startMs: returnMs, endMs: validUntilMs ?? returnMs })),
    ...samples
      .filter(({ isHeld }) => isHeld)
      .map(({ atMs, validUntilMs }) => ({ startMs: atMs, endMs: validUntilMs ?? atMs })),
  ];
  const saidOverMs = Math.min(lostMs, samples.find(({ isHeld }) => !isHeld)?.atMs ?? Number.POSITIVE_INFINITY);
  const claims = merge(spans)
    .map(({ startMs, endMs }) => ({ startMs, endMs: Math.min(endMs, releasedMs, saidOverMs) }))
    .filter(({ startMs, endMs }) => startMs < endMs)
    .flatMap((claim) => inModes(claim, acquire, later));
  const validUntilMs = spans.reduce((last, { endMs }) => Math.max(last, endMs), acquire.returnMs);
  return { acquire, later, samples, releasedMs, validUntilMs, claims };
}

function endedAt({ verb, outcome, refusal, callMs }: Operation): number {
  // A caller of release stops working, whatever the outcome, unless the call was refused before it did anything.
  if (verb === "release" && refusal !== "not-sent") return callMs;
  return verb === "force-release" && outcome !== "no" ? callMs : Number.POSITIVE_INFINITY;
}

interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

function merge(spans: readonly Span[]): Span[] {
  const merged: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.startMs - b.startMs)) {
    const last = merged.at(-1);
    if (last === undefined || span.startMs > last.endMs) merged.push(span);
    else merged[merged.length - 1] = { startMs: last.startMs, endMs: Math.max(last.endMs, span.endMs) };
  }
  return merged;
}

/** A writer that turns into a reader reads from the call on; a reader that turns into the writer writes from the return on. */
function inModes(claim: Span, acquire: Operation, later: readonly Operation[]): Claim[] {
  let mode = acquire.args.mode;
  let { startMs } = claim;
  const claims: Claim[] = [];
  for (const { verb, outcome, callMs, returnMs } of later) {
    // A caller that asked to read only no longer writes, even if the outcome is unknown.
    const isChange = verb === "downgrade" ? outcome !== "no" : verb === "upgrade" && outcome === "ok";
    if (!isChange) continue;
    const atMs = Math.min(verb === "downgrade" ? callMs : returnMs, claim.endMs);
    if (atMs > startMs) claims.push({ startMs, endMs: atMs, mode });
    startMs = Math.max(startMs, atMs);
    mode = verb === "downgrade" ? "read" : "write";
  }
  if (startMs < claim.endMs) claims.push({ startMs, endMs: claim.endMs, mode });
  return claims;
}
