import type { UngrantedEvent } from "../../index.js";

/** What has become of a call of `once` that ran nothing here; undefined if it did not come so far as to be told. */
export function onceOutcome({ outcome, error }: UngrantedEvent, hasWaited: boolean): string | undefined {
  if (outcome === "timeout" || (outcome === "refused" && error === undefined)) return "in_flight";
  if (typeof error !== "object" || error === null) return undefined;
  if ("code" in error && error.code === "ERR_LOCK_ONCE_MISMATCH") return "mismatch";
  if ("code" in error && error.code === "ERR_LOCK_ONCE_BLOCKED") return "blocked";
  // How the protocol says that it has ended before.
  if (outcome !== "refused" || !("state" in error)) return undefined;
  if (error.state === "failed") return "failed";
  return hasWaited ? "joined" : "replayed";
}
