/** The times of the steps between the end of a section and the start of the next one in another process. */
import { quantile } from "../statistics.js";
import type { Traffic } from "../worker/orders.js";

/** A lock or a message that moves from one process to another. All times are on the machine's clock. */
export interface HandOver {
  readonly from: number;
  readonly to: number;
  readonly endedAtMs: number;
  readonly startedAtMs: number;
}

/** The moments after the end of a section, in order. */
export const MOMENTS = ["written", "answered", "told", "started"] as const;
/** One of them. */
export type Moment = (typeof MOMENTS)[number];

/** The p50 times, in µs, from the end of a section to each moment. */
export interface Followed {
  /** The number of all hand-overs. The times come from those that could be traced. */
  readonly handOvers: number;
  /** Hand-overs left out, because no message sent after the end of the section caused them. */
  readonly leftOut: number;
  readonly us: Readonly<Record<Moment, number>>;
  /** The 90th percentile of the time until the next section starts, in µs. */
  readonly p90: number;
}

const US_PER_MS = 1_000;

/**
 * Finds the moments of each hand-over: the first write after the section by the process that ended it, the reply, and
 * the last message to the next process before its section started. The first write is the release only if the process
 * has nothing else to send: all its callers must be in the queue, and its leases too new to be renewed.
 *
 * @param traffics  the traffic of each process, in chronological order
 */
export function follow(handOvers: readonly HandOver[], traffics: readonly Traffic[]): Followed {
  const since: Record<Moment, number[]> = { written: [], answered: [], told: [], started: [] };
  for (const { from, to, endedAtMs, startedAtMs } of handOvers) {
    const writtenMs = firstFrom(traffics[from]?.writtenMs ?? [], endedAtMs);
    const answeredMs = firstFrom(traffics[from]?.answeredMs ?? [], writtenMs);
    const toldMs = lastUntil(traffics[to]?.toldMs ?? [], startedAtMs);
    // A write after the next section has started is another request. Each of these comparisons is false for NaN.
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

/** The first of these times at or after `atMs`. NaN if there is none. */
function firstFrom(instantsMs: readonly number[], atMs: number): number {
  return instantsMs[countBefore(instantsMs, (ms) => ms < atMs)] ?? Number.NaN;
}

/** The last of these times that is not after `atMs`. NaN if there is none. */
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
