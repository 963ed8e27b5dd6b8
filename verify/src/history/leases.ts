/**
 * What each holder may have relied on, and when, for the sweeps over a whole history.
 *
 * A holder relies on a lease from the return of its acquire until it is released, `validUntilMs` has passed, or the
 * lease itself reported its end, as after a clock step. Each later `validUntilMs` (from an extend, or from a sample
 * that reports the lease as held) extends that time.
 */
import { groupBy, type History } from "./history.js";
import type { Held, Mode, Operation } from "./records.js";

/** A time in which a holder relied on its lease, in one mode. */
export interface Claim {
  readonly startMs: number;
  readonly endMs: number;
  /** Undefined for kinds without modes. */
  readonly mode: Mode | undefined;
}

/** Everything that a history says about a granted lease. */
export interface Lease {
  readonly acquire: Operation;
  /** Operations on it after the grant, by call time. */
  readonly later: readonly Operation[];
  readonly samples: readonly Held[];
  /** When its end began: the first call of a release, or of a successful forced release. Infinity if there is none. */
  readonly releasedMs: number;
  /** The last reported end of its validity; its return if none was reported. */
  readonly validUntilMs: number;
  /** In time order, without overlap. */
  readonly claims: readonly Claim[];
}

/** The leases of all acquires that were certainly granted, by call time of the acquires. */
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
  // A caller of release stops working, whatever the outcome, unless the call was refused before it had an effect.
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

/**
 * A downgrading writer counts as a reader from the call on; an upgrading reader counts as a writer from the return
 * on.
 */
function inModes(claim: Span, acquire: Operation, later: readonly Operation[]): Claim[] {
  let mode = acquire.args.mode;
  let { startMs } = claim;
  const claims: Claim[] = [];
  for (const { verb, outcome, callMs, returnMs } of later) {
    // A caller that requested a downgrade no longer writes, even if the outcome is unknown.
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
