/** Checks for clients that wait for each other. */
import type { Deadlock } from "holdfast/admin";
import { formatMs } from "../../frame/durations.js";
import { explainedRemedyOf } from "../../listing/deadlocks.js";
import { whoIs } from "../../listing/people.js";
import { type Check, found, ok, skipped, unknown } from "../check.js";
import { fixFor } from "../words.js";

/** Whether clients wait for each other's locks. */
export const deadlocks: Check = {
  id: "deadlocks",
  reads: "the holders and waiters of all locks, twice, half a second apart",
  levels: "warning",
  risk: "Each client waits for a lock that the next one holds, so none continues until a wait ends. A client is not stuck if its waiting task and its holding task are independent.",
  fix: "release one of the locks. In your program, acquire locks in the same order everywhere, or acquire them together with multiLock",
  families: [],
  run(facts, { nodes, deadlocks: seen }) {
    // The locks are read through the client and not from a single node, so this check reports once.
    if (facts !== nodes.find(({ isGiven, unreachable }) => isGiven && unreachable === undefined)) return [];
    if (seen === undefined) return skipped("the locks were not read");
    if ("error" in seen) {
      return unknown(
        `the locks could not be read (${seen.error})`,
        fixFor(seen.error, "grant SCAN and EVALSHA to this user"),
      );
    }
    const { deadlocks: cycles, isComplete, unreachable } = seen;
    if (cycles.length > 0) {
      return cycles.slice(0, MOST_LISTED).flatMap((one) =>
        found("warning", sentenceOf(one, seen.atMs), { fix: explainedRemedyOf(one) }).map(
          // The locks may be on several nodes.
          (verdict) => ({ ...verdict, node: "all" }),
        ),
      );
    }
    const isWhole = isComplete && unreachable === 0;
    return isWhole ? ok("no clients wait for each other") : unknown("not all locks could be read", "see holdfast ls");
  },
};

/** Maximum number of deadlocks listed individually. */
const MOST_LISTED = 10;

function sentenceOf({ members, sinceAtMs }: Deadlock, atMs: number): string {
  const who = members.map(({ holds, waits, ...client }) => {
    const label = holds.label === undefined ? "" : ` ("${holds.label}")`;
    return `${whoIs({ ...client, owner: holds.owner })} holds ${holds.name}${label} and waits for ${waits.name}`;
  });
  const since = sinceAtMs === undefined ? "" : ` for ${formatMs(Math.max(0, atMs - sinceAtMs))}`;
  return `possible deadlock${since}: ${who.join("; ")}`;
}
