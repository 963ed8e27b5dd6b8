import { groupBy, type History } from "../history/history.js";
import type { KeyScan, Operation } from "../history/records.js";
import { dueAt, killsOf, lastInstant } from "./faults.js";
import { Findings, type SweepResult, showMs } from "./result.js";

/** The options for L4. */
export interface SettledWaitsOptions {
  readonly epsMs: number;
  /** The largest difference in rate between two clocks, by which a key may outlive its lease. */
  readonly rho: number;
  /** Ids of faults during which requests may be held back and executed at their end. */
  readonly forbidding?: ReadonlySet<string>;
}

/**
 * L4: an acquire with a wait limit or an abort settles by then, does not time out early, and leaves no key.
 *
 * If it was not granted, no key contains its owner after its lease would have ended; or immediately, if every server
 * was reachable and it was definitely refused.
 *
 * Figure `latestMs`: by how much the slowest one settled after its deadline; negative if all were early.
 */
export function settledWaits(history: History, options: SettledWaitsOptions): SweepResult {
  const findings = new Findings("L4");
  const scans = groupBy(history.keyScans, ({ lockName }) => lockName);
  const endMs = lastInstant(history);
  const killed = new Set(killsOf(history).map(({ process }) => process));
  for (const operation of history.operations) {
    if (operation.verb !== "acquire") continue;
    // A process that has ended settles and releases nothing; another property checks that it is skipped.
    const isGone = Number.isFinite(operation.returnMs) ? false : killed.has(operation.process);
    if (isGone) {
      findings.exclude(operation, "its process was killed");
      continue;
    }
    settles(findings, operation, endMs, options);
    if (operation.outcome === "ok") continue;
    for (const scan of scans.get(operation.lockName) ?? []) leavesNothing(findings, history, operation, scan, options);
  }
  return findings.result();
}

function settles(findings: Findings, operation: Operation, endMs: number, { epsMs }: SettledWaitsOptions): void {
  const { callMs, returnMs, lockName, owner, args, outcome, refusal } = operation;
  const patienceMs = callMs + (args.waitMs ?? Number.POSITIVE_INFINITY);
  const deadlineMs = Math.max(callMs, Math.min(patienceMs, args.abortedAtMs ?? Number.POSITIVE_INFINITY));
  const settledMs = Math.min(returnMs, endMs);
  const isOpen = settledMs < returnMs;
  if (deadlineMs === Number.POSITIVE_INFINITY || (isOpen && settledMs <= deadlineMs + epsMs)) return;
  const lateMs = settledMs - deadlineMs;
  findings.most("latestMs", lateMs);
  const isEarly = outcome === "no" && refusal === "gave-up" && lateMs < -epsMs;
  const what = `acquire of "${lockName}" by ${owner}`;
  if (lateMs > epsMs)
    findings.decide(lockName, [operation], `${what} is ${showMs(lateMs)} late${isOpen ? " and still open" : ""}`);
  else findings.decide(lockName, [operation], isEarly ? `${what} gave up ${showMs(-lateMs)} early` : undefined);
}

function leavesNothing(
  findings: Findings,
  history: History,
  operation: Operation,
  scan: KeyScan,
  options: SettledWaitsOptions,
): void {
  const { returnMs, callMs, outcome, args, owner, lockName } = operation;
  const { epsMs, rho, forbidding = new Set<string>() } = options;
  const sinceMs = Number.isFinite(returnMs) ? returnMs : callMs + (args.waitMs ?? Number.POSITIVE_INFINITY);
  const leftForMs = (args.leaseMs ?? Number.POSITIVE_INFINITY) * (1 + rho) + epsMs;
  const overMs = dueAt(history, forbidding, sinceMs, leftForMs);
  const isHindered = overMs > sinceMs + leftForMs;
  const isDueAtOnce = outcome === "no" && scan.isReachable && !isHindered && scan.atMs > sinceMs + epsMs;
  if (scan.atMs <= overMs && !isDueAtOnce) return;
  const isLeft = scan.owners.includes(owner);
  findings.decide(
    lockName,
    [operation, scan],
    isLeft ? `${owner} is still in a key of "${lockName}" ${showMs(scan.atMs - sinceMs)} after it gave up` : undefined,
  );
}
