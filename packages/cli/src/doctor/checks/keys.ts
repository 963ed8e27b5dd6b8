/** Checks who else uses this database, and what was left behind in it. */

import { shellWord } from "@holdfast/console/text";
import { parseOwner } from "holdfast/diagnosis";
import { type Check, found, ok, skipped, unknown, type Verdict } from "../check.js";
import type { KeyFacts, NodeFacts } from "../facts.js";
import { counted, few, fixFor, MORE_TIME } from "../words.js";

/** Whether another application may empty the database. */
export const shared: Check = {
  id: "shared",
  reads: "for keys with other prefixes in this database, and for users that may run FLUSHDB or FLUSHALL",
  levels: "info",
  risk: "One FLUSHDB frees every lock.",
  fix: "use a separate database or, better, a separate Redis for locks. Deny users FLUSHDB and FLUSHALL (ACL SETUSER … -flushall -flushdb)",
  families: ["keys", "users"],
  run({ role, keys, flushers, hidden }) {
    if (role === "slave") return skipped("a replica");
    if (keys === undefined)
      return unknown(
        `keys could not be listed (${hidden.get("keys") ?? "no reply to SCAN"})`,
        fixFor(hidden.get("keys"), "grant SCAN to this user"),
      );
    const others = keys.others.map(([word, count]) => `${word} (${count})`);
    const users = flushers === undefined ? "" : `; users who can empty it: ${few(flushers) || "none"}`;
    if (others.length > 0) return found("info", `other keys: ${few(others, 5)}${sampled(keys)}${users}`);
    return ok(`no other keys${sampled(keys)}${users}`);
  },
};

function sampled({ seen, total, isComplete }: KeyFacts): string {
  return isComplete ? "" : `, ${seen} of ${total} keys examined`;
}

/** Claims whose client has no record on any node; empty if not all records were read. */
function orphansIn(keys: KeyFacts, nodes: readonly NodeFacts[]): string[] {
  const primaries = nodes.filter(({ role }) => role !== "slave");
  if (!primaries.every((one) => one.keys?.isComplete === true)) return [];
  const clients = new Set(primaries.flatMap((one) => one.keys?.clients ?? []));
  return keys.waiting.filter((claim) => {
    const client = parseOwner(claim.slice(claim.lastIndexOf(": ") + 2))?.clientId;
    return client === undefined || !clients.has(client);
  });
}

/** Reports keys that no client will ever release. */
export const leftovers: Check = {
  id: "leftovers",
  reads:
    "for lock keys without an expiry, keys with a wrong type or an unknown kind or format, queued waiters whose client is gone, and names used for more than one kind of lock",
  levels: "warning; info for a name used for more than one kind of lock",
  risk: "The affected lock can never be acquired.",
  fix: "run holdfast show NAME, then holdfast release NAME --force -m WHY",
  families: ["keys"],
  run({ role, keys, hidden }, { prefix, nodes }) {
    if (role === "slave") return skipped("a replica");
    if (keys === undefined)
      return unknown(
        `keys could not be listed (${hidden.get("keys") ?? "no reply to SCAN"})`,
        fixFor(hidden.get("keys"), "grant SCAN to this user"),
      );
    const orphans = orphansIn(keys, nodes);
    const verdicts: Verdict[] = [
      ...(keys.withoutExpiry.length > 0
        ? found("warning", `${counted(keys.withoutExpiry.length, "key")} without an expiry: ${few(keys.withoutExpiry)}`)
        : []),
      ...(keys.strange.length > 0
        ? found("warning", `${counted(keys.strange.length, "key")} of unknown kind or form: ${few(keys.strange)}`, {
            risk: "Another program or another version of Holdfast uses this prefix, and neither respects the other's locks.",
            fix: "give other programs another prefix, and run one version of Holdfast in all processes",
          })
        : []),
      ...(keys.mistyped.length > 0
        ? found("warning", `${counted(keys.mistyped.length, "key")} of the wrong type: ${few(keys.mistyped)}`, {
            risk: "Another program or a person wrote them. These locks can be neither acquired nor released.",
            fix: `look at it (redis-cli TYPE); if it is not needed: ${keys.mistyped
              .slice(0, 3)
              .map((key) => `redis-cli UNLINK ${shellWord(key)}`)
              .join("; ")}`,
          })
        : []),
      ...(orphans.length > 0
        ? found("warning", `${orphanCount(orphans.length)}: ${few(orphans)}`, {
            risk: "None for long: the next hand-over skips it. Many of them mean that processes crash while they wait.",
            fix: "nothing to do: it disappears within a minute; holdfast show NAME shows it",
          })
        : []),
      ...(keys.ofSeveralKinds !== undefined && keys.ofSeveralKinds.length > 0
        ? found("info", `in use as several kinds: ${few(keys.ofSeveralKinds)}`, {
            risk: "Locks of different kinds with the same name do not exclude each other: both are granted.",
            fix: "use one kind for each name",
          })
        : []),
    ];
    if (verdicts.length > 0) return verdicts;
    return keys.isComplete
      ? ok(`nothing left over under the prefix ${prefix}`)
      : unknown(`nothing left over under the prefix ${prefix}; examined ${keys.seen} of ${keys.total} keys`, MORE_TIME);
  },
};

function orphanCount(count: number): string {
  return count === 1 ? "1 queued waiter whose client is gone" : `${count} queued waiters whose clients are gone`;
}
