/** "Not now" as an answer: who is in the way, since when and why, so that a refusal is never silent. */
import { AcquireTimeoutError, EvictionError, type Holder, PausedError, ProtocolError, StoreError } from "../index.js";

/**
 * Why nothing was run.
 *
 * - `held`: somebody else has it
 * - `paused`: a person has taken it out of use
 * - `already-done`: it has been done for this period, or for this key
 * - `full`: as many wait as may
 * - `grace`: the server took over from another or was restarted, and grants nothing until what it may have forgotten is over
 * - `unavailable`: the server did not answer, or refused
 */
export type RefusalReason = "held" | "paused" | "already-done" | "full" | "grace" | "unavailable";

/** What a recipe resolves to where it did not run. */
export interface Refusal {
  readonly outcome: "refused";
  readonly reason: RefusalReason;
  /** Who has it, if that is the reason and the server said. */
  readonly holder?: Holder | undefined;
  /** Since when it is so, by the server's clock, in ms since 1970. */
  readonly sinceAtMs?: number | undefined;
  /** In how many ms it may be otherwise, as far as is known: the rest of a lease, a pause or a grace. */
  readonly leaseLeftMs?: number | undefined;
  /** What the holder, or whoever paused it, said of it. */
  readonly label?: string | undefined;
  /** What was thrown, for logs; absent if nothing was. */
  readonly error?: Error | undefined;
}

/** The refusal that an error of an acquire means; undefined for an error that is none. */
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
