/** R8: if many clients contend for one lock, each makes progress, and at any time at least one does (L2, L6). */
import type { History } from "../../history/history.js";
import type { Found } from "./found.js";
import { EPS_MS, POLL_MS } from "./grounds.js";

/** Every process was granted the lock at least once, and no time without a grant is longer than a lease plus a poll. */
export function contention(history: History, leaseMs: number): { readonly found: Found[]; readonly checked: number } {
  const acquires = history.operations.filter(({ verb }) => verb === "acquire");
  const grants = acquires.filter(({ outcome }) => outcome === "ok").toSorted((a, b) => a.returnMs - b.returnMs);
  const served = new Set(grants.map(({ process }) => process));
  const found: Found[] = [];
  const starved = new Set(acquires.map(({ process }) => process).filter((process) => !served.has(process)));
  for (const process of starved) {
    const records = acquires.filter((acquire) => acquire.process === process);
    const message = `${process} asked ${records.length} times, but was never granted anything`;
    found.push({ property: "L6", lockName: records[0]?.lockName ?? "", message, records: records.slice(-5) });
  }
  const mostMs = leaseMs + POLL_MS + EPS_MS;
  for (const [index, grant] of grants.entries()) {
    const before = grants[index - 1];
    if (before === undefined || grant.returnMs - before.returnMs <= mostMs) continue;
    const message = `no client was granted anything for ${(grant.returnMs - before.returnMs).toFixed(0)} ms`;
    found.push({ property: "L2", lockName: grant.lockName, message, records: [before, grant] });
  }
  return { found, checked: grants.length };
}
