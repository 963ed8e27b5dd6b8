/**
 * Asks a server whether it may grant locks, because it may have taken over from another. Defines the key of its marker.
 */
import { call } from "../core/call.js";
import { StoreError } from "../core/errors.js";
import type { Grace } from "../core/store.js";
import { serverLineage, serverShard } from "../generated/server.js";

/** What Holdfast does after a failover or a server restart; the option `failoverGrace` of `createHoldfast`. */
export type FailoverGrace = "auto" | "strict" | "off";

/** How a store asks the server about its lineage; undefined if it must not ask. */
export function failoverGrace(mode: FailoverGrace, prefix: string): Grace | undefined {
  return mode === "off" ? undefined : graceFor(mode, prefix, false);
}

/**
 * How a store asks one server of a quorum about its lineage: as with `"strict"`, but answers of the other servers count
 * too.
 */
export function quorumGrace(prefix: string): Grace {
  return graceFor("strict", prefix, true);
}

function graceFor(mode: "auto" | "strict", prefix: string, isOfQuorum: boolean): Grace {
  let hasWarned = false;
  const hidden = (marker: string): { readonly outcome: "hidden" } => {
    if (mode === "strict") {
      const cause = new Error("the server does not allow INFO, or a cluster CLUSTER SLOTS, which failoverGrace needs");
      throw new StoreError(marker, { mayHaveRun: false, transient: false, cause });
    }
    if (!hasWarned) warnOfHiddenLineage();
    hasWarned = true;
    return { outcome: "hidden" };
  };
  return {
    marker: `${prefix}:lineage`,
    isOfQuorum,
    async ask(run, marker, leaseMs, timeoutMs, vouched, heard = "") {
      const alone = isOfQuorum ? "voter" : "server";
      const args = {
        leaseMs,
        strict: mode === "strict" ? 1 : 0,
        place: vouched === undefined ? alone : "shard",
        vouched: vouched ?? "",
        heard,
      };
      const standing = await call({ store: { run }, name: marker }, serverLineage, { marker }, args, timeoutMs);
      return standing.outcome === "hidden" ? hidden(marker) : { ...standing, run: standing.run[0] ?? "" };
    },
    async inspectSlot(run, marker, vouched, withOthers, timeoutMs) {
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
    "Holdfast cannot see whether this server took over from another, because the server does not show INFO, or the cluster does not show its slots.",
    {
      type: "HoldfastWarning",
      code: "HOLDFAST_LINEAGE_UNKNOWN",
      detail:
        "After a failover the server may grant a lock that is still held. Permit INFO (and in a cluster CLUSTER MYID and CLUSTER SLOTS) to this user, or accept the risk with " +
        'createHoldfast({ failoverGrace: "off" }).',
    },
  );
}
