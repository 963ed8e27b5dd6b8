import { groupBy, type History } from "../history/history.js";
import { type Lease, leasesOf } from "../history/leases.js";
import type { Operation } from "../history/records.js";
import { besides, isShared } from "./beside.js";
import { dueAt, isCalm, killsOf, lastInstant } from "./faults.js";
import { Findings, type SweepResult, showMs } from "./result.js";

/** The options for L1. */
export interface CrashedHolderOptions {
  /** The longest time between two polls of a waiter that gets no message. */
  readonly pollMs: number;
  readonly epsMs: number;
  /** Ids of faults under which no grant can be expected. */
  readonly forbidding: ReadonlySet<string>;
  /**
   * The latest time at which some waiter is granted a lock that is free from `freeMs` on, because this waiter polls,
   * if no fault strikes during its wait. Without it, only the bound lease + poll + eps is checked.
   */
  readonly servedBy?: (waiter: Operation, freeMs: number) => number;
  /**
   * Checks locks with several holders too, with this difference in clock rates. A grant is then due when no other
   * holder can remain besides the dead one.
   */
  readonly sharedRho?: number;
}

/**
 * L1: when a holder is killed, a waiter gets the lock no later than lease + poll + eps after the last renewal.
 *
 * A kill is checked if its process held the lock and another caller was waiting when the grant was due. A waiter that
 * arrived after the lease had ended is due one poll later. Checks only exclusive locks, unless `sharedRho` is set.
 *
 * If nothing but kills has struck since the calls of holder and waiter, the tighter bound of the waiter's next poll
 * applies, from the end of the lease on the server.
 *
 * Figures: `slowestMs`, the longest time from the last renewal to the next grant; `prompt`, the number of waiters
 * checked with the tighter bound; `latestMs`, their longest time from the end of the lease to the next grant.
 */
export function crashedHolder(history: History, options: CrashedHolderOptions): SweepResult {
  const { pollMs, epsMs, forbidding, servedBy, sharedRho } = options;
  const besideUntil = sharedRho === undefined ? undefined : besides(history, sharedRho);
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
      if (isShared(lease.acquire.kind) && besideUntil === undefined) continue;
      const others = (acquires.get(lockName) ?? []).filter((other) => other.process !== process);
      const granted = isShared(lease.acquire.kind) ? others : [...others, ...extensions(history, lease.acquire)];
      const next = first(granted.filter(({ outcome, returnMs }) => outcome === "ok" && returnMs > atMs));
      const grantedMs = next?.returnMs ?? Number.POSITIVE_INFINITY;
      const due = others.map((waiter) => {
        const besideMs = isShared(waiter.kind) ? besideUntil?.(lease.acquire, waiter) : undefined;
        const fromMs = Math.max(renewedMs + leaseMs, waiter.callMs, besideMs ?? Number.NEGATIVE_INFINITY);
        const untilMs = Math.min(waiter.returnMs, diedMs.get(waiter.process) ?? endMs, endMs);
        const poll = { waiter, untilMs, dueMs: dueAt(history, forbidding, fromMs, pollMs + epsMs) };
        const freeMs = endOnServer(lease, atMs);
        const dueMs = servedBy?.(waiter, Math.max(freeMs, atMs));
        const sinceMs = Math.min(waiter.callMs, lease.acquire.callMs);
        if (dueMs === undefined || dueMs > poll.dueMs || !isCalm(history, forbidding, sinceMs - epsMs, dueMs))
          return poll;
        if (untilMs <= dueMs && grantedMs > untilMs) return poll;
        findings.count("prompt");
        if (next !== undefined) findings.most("latestMs", next.returnMs - freeMs);
        return { waiter, untilMs, dueMs };
      });
      const late = due.find(({ untilMs, dueMs }) => untilMs > dueMs && grantedMs > dueMs);
      if (next !== undefined) findings.most("slowestMs", next.returnMs - renewedMs);
      else if (late === undefined) continue;
      findings.decide(
        lockName,
        [lease.acquire, fault, ...(late === undefined ? [] : [late.waiter])],
        late && `"${lockName}" was still not granted at ${showMs(late.dueMs)}, while ${late.waiter.owner} waited`,
      );
    }
  return findings.result();
}

/**
 * Renewals by other processes that began after the grant of `acquire`. A caller of several locks reports them when it
 * has all; until then, its renewals show that it was granted this one.
 */
function extensions(history: History, { lockName, process, returnMs }: Operation): Operation[] {
  return history.operations.filter(
    (operation) =>
      operation.verb === "extend" &&
      operation.lockName === lockName &&
      operation.process !== process &&
      operation.callMs >= returnMs,
  );
}

function first(operations: readonly Operation[]): Operation | undefined {
  return operations.reduce<Operation | undefined>(
    (least, operation) => (least === undefined || operation.returnMs < least.returnMs ? operation : least),
    undefined,
  );
}

function isHeldAt({ acquire, releasedMs, validUntilMs }: Lease, atMs: number): boolean {
  return acquire.returnMs <= atMs && atMs < Math.min(releasedMs, validUntilMs);
}

/** When the lease ends on the server, given the time of each renewal. A renewal never shortens a lease. */
function endOnServer({ acquire, later }: Lease, atMs: number): number {
  const begun = [acquire, ...later.filter(({ verb, outcome }) => verb === "extend" && outcome !== "no")];
  return begun
    .filter(({ callMs }) => callMs <= atMs)
    .reduce(
      (latest, { deliveredMs, returnMs, args: { leaseMs = 0 } }) =>
        Math.max(latest, (deliveredMs ?? Math.min(returnMs, atMs)) + leaseMs),
      Number.NEGATIVE_INFINITY,
    );
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
