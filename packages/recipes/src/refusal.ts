/** Refusals as return values: why a recipe did not run, who holds the lock, and since when. */
import { AcquireTimeoutError, EvictionError, type Holder, PausedError, ProtocolError, StoreError } from "holdfast";

/**
 * Why the work did not run.
 *
 * - `held`: another holder has the lock
 * - `paused`: an operator has paused the lock
 * - `already-done`: the work was already done for this period or this key
 * - `full`: the allowed number of callers is already waiting
 * - `grace`: the server was restarted or took over in a failover. It grants nothing until leases that it may have
 *   forgotten have expired
 * - `unavailable`: the server did not reply or refused, or the lease ended before the work could begin
 */
export type RefusalReason = "held" | "paused" | "already-done" | "full" | "grace" | "unavailable";

/** The result of a recipe that did not run the work. */
export interface Refusal {
  /** Distinguishes a refusal from a result of the work. */
  readonly outcome: "refused";
  /** Why the work did not run. */
  readonly reason: RefusalReason;
  /** For `held`, the current holder; for `already-done`, the holder that ran; absent if the server did not say. */
  readonly holder?: Holder | undefined;
  /** Server time at which the hold, the pause or the earlier run began, in milliseconds since 1970. */
  readonly sinceAtMs?: number | undefined;
  /** Milliseconds until the lease, pause, grace period or period behind the refusal ends, if known. */
  readonly leaseLeftMs?: number | undefined;
  /** The label of the holder or of the pause. */
  readonly label?: string | undefined;
  /** The error behind the refusal, for logs; absent if there is none. */
  readonly error?: Error | undefined;
}

/** Returns the refusal that corresponds to an error of an acquire, or undefined if the error must be thrown. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof PausedError) return paused(error, error);
  if (error instanceof AcquireTimeoutError) {
    return error.pause === undefined ? held(error) : paused(error.pause, error);
  }
  if (error instanceof StoreError && error.resumesInMs !== undefined) {
    return { outcome: "refused", reason: "grace", leaseLeftMs: error.resumesInMs, error };
  }
  if (error instanceof StoreError || error instanceof EvictionError || error instanceof ProtocolError) {
    return { outcome: "refused", reason: "unavailable", error };
  }
  return undefined;
}

function held(error: AcquireTimeoutError): Refusal {
  const { holder } = error;
  if (holder === undefined) return { outcome: "refused", reason: "held", error };
  const { sinceAtMs, leaseLeftMs, label } = holder;
  return {
    outcome: "refused",
    reason: "held",
    holder,
    ...(sinceAtMs === undefined ? {} : { sinceAtMs }),
    leaseLeftMs,
    ...(label === undefined ? {} : { label }),
    error,
  };
}

function paused(pause: Pick<PausedError, "label" | "sinceAtMs" | "untilAtMs">, error: Error): Refusal {
  const { label, sinceAtMs, untilAtMs } = pause;
  const leaseLeftMs = untilAtMs === undefined ? {} : { leaseLeftMs: Math.max(0, untilAtMs - Date.now()) };
  return { outcome: "refused", reason: "paused", label, sinceAtMs, ...leaseLeftMs, error };
}
