import { groupBy, type History } from "../history/history.js";
import { type Lease, leasesOf } from "../history/leases.js";
import type { Operation } from "../history/records.js";
import { dueAt, killsOf, lastInstant } from "./faults.js";
import { Findings, type SweepResult, showMs } from "./result.js";

/** How L1 is judged. */
export interface CrashedHolderOptions {
  /** Longest time between two looks of a waiter that hears nothing. */
  readonly pollMs: number;
  readonly epsMs: number;
  /** Ids of faults under which no grant can be expected. */
  readonly forbidding: ReadonlySet<string>;
}

/**
 * L1: when a holder is killed, a waiter has the lock no later than lease + poll + eps after the last renewal.
 *
 * A kill is judged if its process held the lock then and somebody else waited when the grant was due. Whoever came
 * after the lease had ended is due a poll after it came. Exclusive locks only.
 *
 * Figure `slowestMs`: the longest time from the last renewal to the next grant.
 */
export function crashedHolder(history: History, { pollMs, epsMs, forbidding }: CrashedHolderOptions): SweepResult {
  const findings = new Findings("L1");
  const leases = groupBy(leasesOf(history), ({ acquire }) => acquire.process);
  const acquires = groupBy(
    history.operations.filter(({ verb }) => verb === "acquire"),
    ({ lockName }) => lockName,
  );
  const kills = killsOf(history);
  const diedMs = new Map(kills.map(({ process, atMs }) => [process, atMs]));
  const endMs = lastInstant(history);
  for (const { process, atMs, fault } of kills)
    for (const lease of leases.get(process) ?? []) {
      const { lockName } = lease.acquire;
      const { renewedMs, leaseMs } = lastRenewal(lease, atMs);
      if (leaseMs === undefined || !isHeldAt(lease, atMs)) continue;
      const others = (acquires.get(lockName) ?? []).filter((other) => other.process !== process);
      const next = first(others.filter(({ outcome, returnMs }) => outcome === "ok" && returnMs > atMs));
      const grantedMs = next?.returnMs ?? Number.POSITIVE_INFINITY;
      const due = others.map((waiter) => {
        const fromMs = Math.max(renewedMs + leaseMs, waiter.callMs);
        const untilMs = Math.min(waiter.returnMs, diedMs.get(waiter.process) ?? endMs, endMs);
        return { waiter, untilMs, dueMs: dueAt(history, forbidding, fromMs, pollMs + epsMs) };
      });
      const late = due.find(({ untilMs, dueMs }) => untilMs > dueMs && grantedMs > dueMs);
      if (next !== undefined) findings.most("slowestMs", next.returnMs - renewedMs);
      else if (late === undefined) continue;
      findings.decide(
        lockName,
        [lease.acquire, fault, ...(late === undefined ? [] : [late.waiter])],
        late && `"${lockName}" was granted to nobody by ${showMs(late.dueMs)}, while ${late.waiter.owner} waited`,
      );
    }
  return findings.result();
}

function first(operations: readonly Operation[]): Operation | undefined {
  return operations.reduce<Operation | undefined>(
    (least, operation) => (least === undefined || operation.returnMs < least.returnMs ? operation : least),
    undefined,
  );
}

function isHeldAt({ acquire, releasedMs, validUntilMs }: Lease, atMs: number): boolean {
  const isExclusive = !["semaphore", "read-write-lock"].includes(acquire.kind);
  return isExclusive && acquire.returnMs <= atMs && atMs < Math.min(releasedMs, validUntilMs);
}

interface Renewal {
  readonly renewedMs: number;
  readonly leaseMs: number | undefined;
}

function lastRenewal({ acquire, later }: Lease, atMs: number): Renewal {
  const renewals = [acquire, ...later.filter(({ verb, outcome }) => verb === "extend" && outcome !== "no")];
  const last = renewals.filter(({ callMs }) => callMs <= atMs).at(-1) ?? acquire;
  return { renewedMs: Math.min(last.returnMs, atMs), leaseMs: last.args.leaseMs };
}
