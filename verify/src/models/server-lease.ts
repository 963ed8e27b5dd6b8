/**
 * When the server may, and when it must, have ended a lease.
 *
 * The history does not contain the server's clock, only two instants between which the server set the lease. So the end
 * of a lease is a time span, and every model asks two questions: may it have ended, and may it still run? Each bound
 * compares one operation with one lease. No legal history is refused, but an illegal one may be accepted that a solver
 * over all instants would refuse.
 */
import type { Operation } from "../history/records.js";
import type { JudgedOperation } from "./timed.js";

/** A time in which the server's clock is not reliable. */
export interface Unbounded {
  readonly beganMs: number;
  readonly endedMs: number;
  /**
   * `early`: a hold may vanish at any time during the fault (clock step forward, eviction, flush, failover). `late`: a
   * hold may stay forever after the fault (clock step backward, frozen clock).
   */
  readonly expiry: "early" | "late";
}

/** How to derive the end of a lease on the server from what its client observed. */
export interface ExpiryRules {
  /** The largest difference between the rates of two clocks. */
  readonly rho: number;
  readonly unbounded: readonly Unbounded[];
}

/** The rate difference of assumption A1, as in the library, and a server without clock faults. */
export const EXPIRY: ExpiryRules = Object.freeze({ rho: 0.01, unbounded: Object.freeze([]) });

/** The earliest start of a lease, and the span in which the server ends it; `earliestMs` Infinity: it does not. */
export interface ServerLease {
  readonly fromMs: number;
  readonly earliestMs: number;
  readonly latestMs: number;
}

/** The lease that this acquire or extend grants, if it takes effect. */
export function serverLease(operation: JudgedOperation, { rho }: ExpiryRules): ServerLease {
  const { args, callMs, returnMs, refusal, deliveredMs, validUntilMs, outcome } = operation;
  const appliedByMs = outcome === "info" ? (deliveredMs ?? Number.POSITIVE_INFINITY) : returnMs;
  if (args.leaseMs === undefined) {
    // Handed over within a process: the lease on the server already runs, and only its holder knows for how long.
    return { fromMs: callMs, earliestMs: validUntilMs ?? callMs, latestMs: Number.POSITIVE_INFINITY };
  }
  // A caller that gave up may release, at any time, a grant that was made just as it left.
  const boundMs = refusal === "gave-up" ? callMs : callMs + args.leaseMs * (1 - rho);
  const earliestMs = operation.isKept ? Number.POSITIVE_INFINITY : boundMs;
  return {
    fromMs: callMs,
    earliestMs,
    latestMs: appliedByMs + Math.max(args.leaseMs, args.longestMs ?? 0) * (1 + rho),
  };
}

/** The lease after an extend: at least as long as requested, and never shorter than before. */
export function extendedLease(before: ServerLease, asked: ServerLease): ServerLease {
  return {
    fromMs: Math.min(before.fromMs, asked.fromMs),
    // Infinity only means that it lasted until this extend.
    earliestMs: before.earliestMs === Infinity ? asked.earliestMs : Math.max(before.earliestMs, asked.earliestMs),
    latestMs: Math.max(before.latestMs, asked.latestMs),
  };
}

/** One lease for two, when it is unknown which of them counts. */
export function eitherLease(a: ServerLease, b: ServerLease): ServerLease {
  return {
    fromMs: Math.min(a.fromMs, b.fromMs),
    earliestMs: Math.min(a.earliestMs, b.earliestMs),
    latestMs: Math.max(a.latestMs, b.latestMs),
  };
}

/** Whether the lease can have ended by itself before the operation took effect. */
export function mayBeOver(lease: ServerLease, { returnMs }: Operation, { unbounded }: ExpiryRules): boolean {
  if (lease.earliestMs === Number.POSITIVE_INFINITY) return false;
  if (lease.earliestMs <= returnMs) return true;
  return unbounded.some(
    ({ expiry, beganMs, endedMs }) => expiry === "early" && beganMs <= returnMs && lease.fromMs <= endedMs,
  );
}

/** Whether the lease can still have run when the operation took effect. */
export function mayStillRun(lease: ServerLease, { callMs }: Operation, { unbounded }: ExpiryRules): boolean {
  if (lease.latestMs >= callMs) return true;
  return unbounded.some(
    ({ expiry, beganMs, endedMs }) => expiry === "late" && beganMs <= lease.latestMs && lease.fromMs <= endedMs,
  );
}

/** The lease as a string, for the key of a state. */
export function leaseKey({ fromMs, earliestMs, latestMs }: ServerLease): string {
  return `${fromMs},${earliestMs},${latestMs}`;
}
