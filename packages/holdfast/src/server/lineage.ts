/**
 * Checks whether a server is allowed to grant locks, because it might have taken over from another. Defines the key of
 * its marker.
 */
import { call } from "../core/call.js";
import { StoreError, warn } from "../core/errors.js";
import type { Grace } from "../core/store.js";
import { luaRunId } from "../generated/lua.js";
import { serverLineage } from "../generated/server.js";

/** See `Grace.ifOtherRun`. False on Redis 7 and later, and on Valkey, because only they have `REDIS_VERSION_NUM`. */
export const IF_OTHER_RUN: string = `${luaRunId}
if not redis.REDIS_VERSION_NUM and runId(redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')) ~= `;

/** What Holdfast does after a failover or a server restart; the option `failoverGrace` of `createHoldfast`. */
export type FailoverGrace = "auto" | "strict" | "off";

/**
 * Returns how a store asks the server about its lineage; undefined if the store must not ask.
 *
 * @param inspectSlot  see shard.ts; needed if the server may be in a cluster
 */
export function failoverGrace(
  mode: FailoverGrace,
  prefix: string,
  inspectSlot?: Grace["inspectSlot"],
): Grace | undefined {
  return mode === "off" ? undefined : graceFor(mode, prefix, undefined, inspectSlot);
}

/** Like `failoverGrace`. @param memoryOf  set for a server of a quorum: see `Grace.memoryOf` */
export function graceFor(
  mode: "auto" | "strict",
  prefix: string,
  memoryOf: Grace["memoryOf"],
  inspectSlot?: Grace["inspectSlot"],
): Grace {
  let hasWarned = false;
  const hidden = (marker: string): { readonly outcome: "hidden" } => {
    if (mode === "strict") {
      const cause = new Error(
        'failoverGrace "strict": grant INFO (in a cluster also CLUSTER MYID and CLUSTER SLOTS) to this user',
      );
      throw new StoreError(marker, { mayHaveRun: false, transient: false, cause });
    }
    if (!hasWarned) warnOfHiddenLineage();
    hasWarned = true;
    return { outcome: "hidden" };
  };
  return {
    marker: `${prefix}:lineage`,
    memoryOf,
    ifOtherRun: IF_OTHER_RUN,
    async ask(run, marker, leaseMs, timeoutMs, vouched, heard = "") {
      const alone = memoryOf === undefined ? "server" : "voter";
      const args = {
        leaseMs,
        strict: mode === "strict" ? 1 : 0,
        place: vouched === undefined ? alone : "shard",
        vouched: vouched ?? "",
        heard,
      };
      const standing = await call({ store: { run }, name: marker }, serverLineage, { marker }, args, timeoutMs);
      if (standing.outcome === "hidden") return hidden(marker);
      const [id = "", shared] = standing.run;
      return { ...standing, run: id, sharesScripts: shared === "shared" };
    },
    inspectSlot:
      inspectSlot &&
      (async (run, marker, ...about) => {
        const standing = await inspectSlot(run, marker, ...about);
        return standing.outcome === "hidden" ? hidden(marker) : standing;
      }),
  };
}

function warnOfHiddenLineage(): void {
  warn(
    "HOLDFAST_LINEAGE_UNKNOWN",
    "Holdfast cannot see whether this server took over from another, because the server hides INFO or, in a cluster, its slots.",
    "After a failover, it may grant a lock that is still held. Grant INFO (in a cluster also CLUSTER MYID and CLUSTER SLOTS) to the Redis user, or accept the risk with " +
      'createHoldfast({ failoverGrace: "off" }).',
  );
}
