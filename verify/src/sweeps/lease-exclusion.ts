import type { History } from "../history/history.js";
import { claimsByLock, EXCLUSIVE, isSameHolder, sweepOverlaps } from "./claims.js";
import { Findings, type SweepResult, showMs } from "./result.js";

/**
 * S2: no two leases of one exclusive lock are valid at the same time.
 *
 * Figure `smallestGapMs`: the shortest time between the end of one lease and the beginning of the next holder's.
 * Negative if they overlap, absent if no lock had two leases.
 */
export function leaseExclusion(history: History): SweepResult {
  const findings = new Findings("S2");
  for (const [name, claims] of claimsByLock(history, EXCLUSIVE)) {
    let latest = claims[0];
    sweepOverlaps(claims, (claim, running) => {
      const others = running.filter((other) => !isSameHolder(claim, other));
      for (const other of others) {
        const overlapMs = Math.min(claim.endMs, other.endMs) - claim.startMs;
        findings.decide(
          name,
          [other.lease.acquire, claim.lease.acquire],
          `"${name}" has two holders for ${showMs(overlapMs)}: ${other.lease.acquire.owner} until ` +
            `${showMs(other.endMs)} and ${claim.lease.acquire.owner} from ${showMs(claim.startMs)}`,
        );
      }
      if (others.length === 0) findings.decide(name, [claim.lease.acquire], undefined);
      if (latest !== undefined && !isSameHolder(claim, latest))
        findings.least("smallestGapMs", claim.startMs - latest.endMs);
      if (latest === undefined || claim.endMs >= latest.endMs) latest = claim;
    });
  }
  return findings.result();
}
