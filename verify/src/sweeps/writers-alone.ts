import type { History } from "../history/history.js";
import { claimsByLock, sweepOverlaps } from "./claims.js";
import { Findings, type SweepResult, showMs } from "./result.js";

/**
 * X2: while a writer relies on its lease, no other reader or writer does.
 *
 * Figure `readersAtOnce`: the maximum number of concurrent readers. With one, the sweep has only seen a mutex.
 */
export function writersAlone(history: History): SweepResult {
  const findings = new Findings("X2");
  for (const [name, claims] of claimsByLock(history, new Set(["read-write-lock"])))
    sweepOverlaps(claims, (claim, running) => {
      const others = running.filter(({ lease }) => lease.acquire.owner !== claim.lease.acquire.owner);
      if (claim.mode === "read")
        findings.most("readersAtOnce", 1 + others.filter(({ mode }) => mode === "read").length);
      const inConflict = others.filter(({ mode }) => mode !== "read" || claim.mode !== "read");
      if (inConflict.length === 0) findings.decide(name, [claim.lease.acquire], undefined);
      for (const other of inConflict)
        findings.decide(
          name,
          [other.lease.acquire, claim.lease.acquire],
          `"${name}": ${claim.lease.acquire.owner} may ${claim.mode} from ${showMs(claim.startMs)} while ` +
            `${other.lease.acquire.owner} may ${other.mode} until ${showMs(other.endMs)}`,
        );
    });
  return findings.result();
}
