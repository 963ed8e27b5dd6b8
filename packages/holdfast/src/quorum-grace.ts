/** Asks one server of a quorum about its lineage, and evaluates the server's last answer. See docs/adr/131. */
import type { AskOfMemory, Grace, LastAnswer, ServerMemory } from "./core/store.js";
import { graceFor } from "./server/lineage.js";
import { notRun } from "./stores/failure.js";
import { TRUSTED_MS } from "./stores/server-failover-guard.js";

/**
 * Returns the failover rules for one server of a quorum. They are the same as for `"strict"`, except that the answers
 * of the other servers count too.
 */
export function quorumGrace(prefix: string): Grace {
  const grace: Grace = graceFor("strict", prefix, (last, ask) => memoryOf(grace.marker, last, ask));
  return grace;
}

function memoryOf(marker: string, last: () => LastAnswer | undefined, ask: AskOfMemory): ServerMemory {
  return {
    knows: (leaseMs) => {
      const { standing, askedAtMs } = last() ?? {};
      const isRecent = askedAtMs !== undefined && performance.now() - askedAtMs <= TRUSTED_MS;
      return isRecent && standing?.outcome === "settled" && standing.longestMs >= leaseMs ? standing.run : undefined;
    },
    get aloneIn() {
      const standing = last()?.standing;
      return standing?.outcome === "alone" ? standing.run : undefined;
    },
    ask: async (leaseMs, timeoutMs, heard) => {
      const standing = await ask(leaseMs, timeoutMs, heard);
      if (standing !== undefined) return standing;
      const cause = new Error("the connection was lost while Holdfast checked whether the server may grant locks");
      throw notRun(marker, cause, true);
    },
  };
}
