/** Whether a server may grant locks after it took over from another: how it is asked, and where it keeps the answer. */
import { emitWarning } from "node:process";
import { call } from "../core/call.js";
import { StoreError } from "../core/errors.js";
import type { Grace } from "../core/store.js";
import { serverLineage } from "../generated/scripts.js";

/** See `HoldfastOptions.failoverGrace`. */
export type FailoverGrace = "auto" | "strict" | "off";

/**
 * How a store asks the server about itself; undefined if it is not to ask.
 *
 * @param leastMs  a server that changed is quiet for so long at least, also if it has forgotten how long leases are
 */
export function failoverGrace(mode: FailoverGrace, prefix: string, leastMs = 0): Grace | undefined {
  if (mode === "off") return undefined;
  let hasWarned = false;
  const one: Grace = {
    markerOf: () => `${prefix}:lineage`,
    async ask(run, marker, leaseMs, timeoutMs) {
      const args = { leaseMs: Math.max(leaseMs, leastMs), strict: mode === "strict" ? 1 : 0 };
      const standing = await call({ store: { run }, name: marker }, serverLineage, { marker }, args, timeoutMs);
      if (standing.outcome !== "hidden") return standing;
      if (mode === "strict") {
        const cause = new Error("the server does not show INFO, which failoverGrace needs");
        throw new StoreError(marker, { mayHaveRun: false, transient: false, cause });
      }
      if (!hasWarned) warnOfHiddenLineage();
      hasWarned = true;
      return standing;
    },
  };
  return one;
}

function warnOfHiddenLineage(): void {
  emitWarning("Holdfast cannot see whether this server took over from another, because it does not show INFO.", {
    type: "HoldfastWarning",
    code: "HOLDFAST_LINEAGE_UNKNOWN",
    detail:
      "After a failover it may grant a lock that is still held. Permit INFO to this user, or say failoverGrace: " +
      '"off" to createHoldfast.',
  });
}
