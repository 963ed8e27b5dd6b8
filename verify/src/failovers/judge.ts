/** Evaluates the records of a run. */
import { type History, type HistoryRecord, historyOf, type Lease, leasesOf } from "../history/index.js";
import { leaseExclusion, risingTokens, uniqueTokens, type Violation } from "../sweeps/index.js";
import type { Crew } from "./crew.js";
import type { Failover } from "./round.js";

/** How long a second master may exist before it is noticed. */
const LOOKED_AT_MS = 500;

/** Sums over all failovers of a run. */
export interface Sums {
  readonly failovers: number;
  readonly grants: number;
  /** Failovers in which the promoted replica lacked writes of its master. */
  readonly withLostWrites: number;
  /** Pairs of leases that were valid at the same time, by the clocks of their holders. */
  readonly doubleGrants: number;
  /** The same while there were two masters: the old one must stop, but in this setup it did not. */
  readonly doubleGrantsOfTwoMasters: number;
  /** Failovers with two masters at the same time. */
  readonly withTwoMasters: number;
  /** Tokens that were granted twice, or after a higher one. */
  readonly tokensThatFell: number;
  /** Leases that were valid when the master was killed. */
  readonly heldAtDeath: number;
  /** Of these leases, those that the successor did not know. */
  readonly lostGrants: number;
  /** Of the lost grants, those that their holders restored: they were renewed or released on the successor. */
  readonly reclaimed: number;
  /** Leases that were refused although they were still valid. */
  readonly refused: number;
  /** Leases whose validity ended before a server could be reached. */
  readonly tooLate: number;
  /** Leases that were valid at the kill and known to the successor, but lost while still valid. */
  readonly lostThoughKnown: number;
  /** The longest time from when a lock was grantable again until it was granted, in ms. */
  readonly longestResumeMs: number;
  /** Locks that were never granted again. */
  readonly stuck: number;
  /** Acquires that failed because they got no reply for a whole lease. */
  readonly withoutAnswer: number;
  /** Processes that ended unexpectedly, and unexpected errors. */
  readonly errors: number;
  /** Descriptions of what went wrong. */
  readonly messages: readonly string[];
}

/** Judges a run by its record. */
export function judge(crew: Crew, failovers: readonly Failover[], leaseMs: number, isOn: boolean): Sums {
  const history: History = historyOf(crew.records);
  const leases = leasesOf(history);
  const [exclusion, unique, rising] = [leaseExclusion(history), uniqueTokens(history), risingTokens(history)];
  const isOfTwo = ({ records }: Violation): boolean => isUnderTwoMasters(records.at(-1), failovers);
  const sums = {
    heldAtDeath: 0,
    lostGrants: 0,
    reclaimed: 0,
    refused: 0,
    tooLate: 0,
    lostThoughKnown: 0,
    longestResumeMs: 0,
  };
  for (const failover of failovers) {
    for (const name of failover.names) {
      const ofName = leases.filter(({ acquire }) => acquire.lockName === name);
      for (const lease of ofName.filter((each) => isHeldAt(each, failover.killedAtMs))) {
        sums.heldAtDeath += 1;
        const isKnown = failover.holders.get(name) === lease.acquire.owner;
        const loss = crew.losses.get(lease.acquire.id);
        if (!isKnown) sums.lostGrants += 1;
        if (loss === undefined) {
          if (!isKnown && isConfirmed(lease, failover.promotedAtMs)) sums.reclaimed += 1;
        } else if (loss === "expired") sums.tooLate += 1;
        else if (isKnown) sums.lostThoughKnown += 1;
        else sums.refused += 1;
      }
      const resumedMs = resumeMs(ofName, failover, isOn ? leaseMs : 0);
      sums.longestResumeMs = Math.max(sums.longestResumeMs, resumedMs);
    }
  }
  return {
    failovers: failovers.length,
    grants: leases.length,
    withLostWrites: failovers.filter(({ lostBytes }) => lostBytes > 0).length,
    doubleGrants: exclusion.violations.filter((found) => !isOfTwo(found)).length,
    doubleGrantsOfTwoMasters: exclusion.violations.filter(isOfTwo).length,
    withTwoMasters: failovers.filter(({ rivalAtMs }) => rivalAtMs !== undefined).length,
    tokensThatFell: [...unique.violations, ...rising.violations].filter((found) => !isOfTwo(found)).length,
    ...sums,
    stuck: failovers.reduce((sum, { stuck }) => sum + stuck.length, 0),
    withoutAnswer: crew.errors.filter(isWithoutAnswer).length,
    errors: crew.errors.filter((error) => !isWithoutAnswer(error)).length,
    messages: [
      ...[...exclusion.violations, ...unique.violations, ...rising.violations].map(
        ({ message, records }) => `${message}${whenOf(records.at(-1), failovers)}`,
      ),
      ...failovers.flatMap(({ stuck }) => stuck.map((name) => `"${name}" was never granted again`)),
      ...crew.errors,
    ],
  };
}

function isUnderTwoMasters(record: HistoryRecord | undefined, failovers: readonly Failover[]): boolean {
  if (record?.type !== "operation") return false;
  const at = failovers.findLastIndex(({ cutAtMs }) => cutAtMs <= record.returnMs);
  // Starts before the rival was seen, because its state is only polled.
  return record.returnMs > (failovers[at]?.rivalAtMs ?? Infinity) - LOOKED_AT_MS;
}

/** The time of a record, relative to the last failover before it. */
function whenOf(record: HistoryRecord | undefined, failovers: readonly Failover[]): string {
  if (record?.type !== "operation") return "";
  const { returnMs, process } = record;
  const number = failovers.findLastIndex(({ cutAtMs }) => cutAtMs <= returnMs);
  const failover = failovers[number];
  if (failover === undefined) return ` (by ${process}, before all failovers)`;
  const [cut, killed, promoted, restarted] = [
    failover.cutAtMs,
    failover.killedAtMs,
    failover.promotedAtMs,
    failover.restartedAtMs,
  ].map((atMs) => Math.round(returnMs - atMs));
  return ` (by ${process}, failover ${number + 1}: ${cut} ms after the cut, ${killed} the death, ${promoted} the promotion, ${restarted} the restart)`;
}

function isWithoutAnswer(error: string): boolean {
  return /StoreError: .*did not confirm/.test(error);
}

function isHeldAt({ claims }: Lease, atMs: number): boolean {
  return claims.some(({ startMs, endMs }) => startMs <= atMs && atMs < endMs);
}

/** Whether the successor has renewed the lease or confirmed its release. */
function isConfirmed({ samples, later, acquire }: Lease, promotedAtMs: number): boolean {
  const knownMs = Math.max(
    acquire.validUntilMs ?? 0,
    ...samples.filter(({ atMs }) => atMs <= promotedAtMs).map(({ validUntilMs }) => validUntilMs ?? 0),
  );
  const isRenewed = samples.some(
    ({ atMs, isHeld, validUntilMs }) => atMs > promotedAtMs && isHeld && (validUntilMs ?? 0) > knownMs + 5,
  );
  return (
    isRenewed ||
    later.some(({ verb, outcome, callMs }) => verb === "release" && outcome === "ok" && callMs > promotedAtMs)
  );
}

/** The time from when the lock was grantable until it was granted; 0 if it was never granted. */
function resumeMs(leases: readonly Lease[], { killedAtMs, promotedAtMs }: Failover, quietMs: number): number {
  const [next] = leases
    .filter(({ acquire }) => acquire.returnMs > promotedAtMs)
    .toSorted((one, other) => one.acquire.returnMs - other.acquire.returnMs);
  if (next === undefined) return 0;
  const ends = leases
    .filter(({ acquire }) => acquire.returnMs <= killedAtMs)
    .map(({ claims }) => claims.at(-1)?.endMs ?? 0);
  return next.acquire.returnMs - Math.max(promotedAtMs + quietMs, next.acquire.callMs, ...ends);
}
