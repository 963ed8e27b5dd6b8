/** Whether a server may grant locks after it took over from another: how it is asked, and where it keeps the answer. */
import { call } from "../core/call.js";
import { StoreError } from "../core/errors.js";
import type { Grace } from "../core/store.js";
import { serverLineage, serverShard } from "../generated/scripts.js";

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
  const hidden = (marker: string): { readonly outcome: "hidden" } => {
    if (mode === "strict") {
      const cause = new Error("the server does not show INFO, or a cluster its slots, which failoverGrace needs");
      throw new StoreError(marker, { mayHaveRun: false, transient: false, cause });
    }
    if (!hasWarned) warnOfHiddenLineage();
    hasWarned = true;
    return { outcome: "hidden" };
  };
  return {
    marker: `${prefix}:lineage`,
    async ask(run, marker, leaseMs, timeoutMs, vouched) {
      const args = {
        leaseMs: Math.max(leaseMs, leastMs),
        strict: mode === "strict" ? 1 : 0,
        place: vouched === undefined ? "server" : "shard",
        vouched: vouched ?? "",
      };
      const standing = await call({ store: { run }, name: marker }, serverLineage, { marker }, args, timeoutMs);
      return standing.outcome === "hidden" ? hidden(marker) : { ...standing, run: standing.run[0] ?? "" };
    },
    async look(run, marker, vouched, withOthers, timeoutMs) {
      const args = { vouched, list: withOthers ? 1 : 0 };
      const seen = await call({ store: { run }, name: marker }, serverShard, { marker }, args, timeoutMs);
      if (seen.outcome === "hidden") return hidden(marker);
      const [name = "", id = "", ...words] = seen.words;
      const others = words.flatMap((word, i) => (i % 2 === 0 ? [{ id: word, home: Number(words[i + 1]) }] : []));
      return { outcome: seen.outcome, home: seen.home, run: name, id, others };
    },
  };
}

function warnOfHiddenLineage(): void {
  process.emitWarning(
    "Holdfast cannot see whether this server took over from another, because it does not show INFO, or a cluster its slots.",
    {
      type: "HoldfastWarning",
      code: "HOLDFAST_LINEAGE_UNKNOWN",
      detail:
        "After a failover it may grant a lock that is still held. Permit INFO (and in a cluster CLUSTER MYID and CLUSTER SLOTS) to this user, or say failoverGrace: " +
        '"off" to createHoldfast.',
    },
  );
}
