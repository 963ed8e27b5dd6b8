/** What happens, and when, between the end of a section and the beginning of the next one in another process. */
import { quantile } from "../statistics.js";
import type { Traffic } from "../worker/orders.js";

/** A lock, or a message, that goes from one process to another. All instants are on the machine's clock. */
export interface HandOver {
  readonly from: number;
  readonly to: number;
  readonly endedAtMs: number;
  readonly startedAtMs: number;
}

/** The moments after the end of a section, in their order. */
export const MOMENTS = ["written", "answered", "told", "started"] as const;
/** One of them. */
export type Moment = (typeof MOMENTS)[number];

/** The time of each moment since the end of the section before it, p50 in µs. */
export interface Followed {
  /** The number of all hand-overs. The times are of those that could be traced. */
  readonly handOvers: number;
  /** Those that no message of the process that ended has brought about after the end. */
  readonly leftOut: number;
  readonly us: Readonly<Record<Moment, number>>;
  /** The slowest tenth takes at least so long, in µs. */
  readonly p90: number;
}

const US_PER_MS = 1_000;

/**
 * Finds the moments of each hand-over: the first write of the process that ended and the answer to it, and the last
 * message that came
 * to the next process before it began. That the first write is the release holds where the process has nothing else to
 * ask for: all of
 * its callers stand in the queue already, and its leases are too young for renewals.
 *
 * @param traffics  of each process, each in the order of time
 */
export function follow(handOvers: readonly HandOver[], traffics: readonly Traffic[]): Followed {
  const since: Record<Moment, number[]> = { written: [], answered: [], told: [], started: [] };
  for (const { from, to, endedAtMs, startedAtMs } of handOvers) {
    const writtenMs = firstFrom(traffics[from]?.writtenMs ?? [], endedAtMs);
    const answeredMs = firstFrom(traffics[from]?.answeredMs ?? [], writtenMs);
    const toldMs = lastUntil(traffics[to]?.toldMs ?? [], startedAtMs);
    // Written only after the next one has begun is another request; NaN fails each of these.
    if (!(writtenMs <= startedAtMs && answeredMs >= writtenMs && toldMs >= writtenMs)) continue;
    since.written.push((writtenMs - endedAtMs) * US_PER_MS);
    since.answered.push((answeredMs - endedAtMs) * US_PER_MS);
    since.told.push((toldMs - endedAtMs) * US_PER_MS);
    since.started.push((startedAtMs - endedAtMs) * US_PER_MS);
  }
  const p50 = (moment: Moment): number => quantile(since[moment], 0.5);
  return {
    handOvers: handOvers.length,
    leftOut: handOvers.length - since.started.length,
    us: { written: p50("written"), answered: p50("answered"), told: p50("told"), started: p50("started") },
    p90: quantile(since.started, 0.9),
  };
}

/** The first of these instants at or after `atMs`. NaN if there is none. */
function firstFrom(instantsMs: readonly number[], atMs: number): number {
  return instantsMs[countBefore(instantsMs, (ms) => ms < atMs)] ?? Number.NaN;
}

/** The last of these instants that is not after `atMs`; NaN where there is none. */
function lastUntil(instantsMs: readonly number[], atMs: number): number {
  return instantsMs[countBefore(instantsMs, (ms) => ms <= atMs) - 1] ?? Number.NaN;
}

function countBefore(instantsMs: readonly number[], isBefore: (ms: number) => boolean): number {
  let low = 0;
  let high = instantsMs.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(instantsMs[middle] ?? Number.NaN)) low = middle + 1;
    else high = middle;
  }
  return low;
}
