import type { UngrantedEvent } from "holdfast";

/**
 * Returns the outcome of a call to `once` that ran nothing here, as the metric reports it. Returns undefined if the
 * call ended for a reason that the metric does not count, such as an abort or a server that did not reply.
 */
export function onceOutcome({ outcome, error }: UngrantedEvent, hasWaited: boolean): string | undefined {
  if (outcome === "timeout" || (outcome === "refused" && error === undefined)) return "in_flight";
  if (typeof error !== "object" || error === null) return undefined;
  if ("code" in error && error.code === "ERR_LOCK_ONCE_MISMATCH") return "mismatch";
  if ("code" in error && error.code === "ERR_LOCK_ONCE_BLOCKED") return "blocked";
  // If the work has already ended, the protocol of `once` reports a refusal with the final state.
  if (outcome !== "refused" || !("state" in error)) return undefined;
  if (error.state === "failed") return "failed";
  return hasWaited ? "joined" : "replayed";
}
