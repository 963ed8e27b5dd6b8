import { groupBy, type History } from "../history/history.js";
import { type Lease, leasesOf } from "../history/leases.js";
import type { Held, Lost, Turn } from "../history/records.js";
import { lastInstant } from "./faults.js";
import { Findings, type SweepResult, showMs } from "./result.js";

/** The options for S4. */
export interface LoudLossOptions {
  /** The time that the library reserves for the holder to stop: the signal is due this long before `validUntilMs`. */
  readonly marginMs: number;
  readonly epsMs: number;
}

/**
 * S4: an ended lease reports its end in time, and never becomes valid again.
 *
 * (a) No sample is true at or after the known `validUntilMs`. (b) The samples of a lease are true, then false. (c)
 * The signal comes no later than the end of the first uninterrupted turn that began after it was due. (d) After a
 * pause, or a turn, longer than the lease, the first sample is false.
 */
export function loudLoss(history: History, options: LoudLossOptions): SweepResult {
  const findings = new Findings("S4");
  const lost = new Map(history.lost.map((record) => [record.leaseId, record]));
  const turns = groupBy(history.turns, ({ process }) => process);
  for (const list of turns.values()) list.sort((a, b) => a.beganMs - b.beganMs);
  const whole = new Map(Array.from(turns, ([process, list]) => [process, list.filter((turn) => !turn.wasInterrupted)]));
  const leases = leasesOf(history);
  const shortestMs = Math.min(
    ...new Set(leases.map(({ acquire }) => acquire.args.leaseMs ?? Number.POSITIVE_INFINITY)),
  );
  const pauses = new Map(Array.from(turns, ([process, list]) => [process, pausesOf(list, shortestMs)]));
  const endMs = lastInstant(history);
  for (const lease of leases) {
    samplesAgree(findings, lease);
    signalIsDue(findings, lease, whole.get(lease.acquire.process) ?? [], lost.get(lease.acquire.id), endMs, options);
    pausesShow(findings, lease, pauses.get(lease.acquire.process) ?? []);
  }
  return findings.result();
}

function samplesAgree(findings: Findings, { acquire, later, samples }: Lease): void {
  let over: Held | undefined;
  // What the holder knew at the sample; later reports must not excuse it.
  const words = later.filter(
    ({ verb, outcome, validUntilMs }) => verb !== "release" && outcome === "ok" && validUntilMs !== null,
  );
  for (const sample of samples) {
    const knownMs = words
      .filter(({ returnMs }) => returnMs <= sample.atMs)
      .reduce((last, { validUntilMs }) => Math.max(last, validUntilMs ?? 0), acquire.validUntilMs ?? 0);
    const validUntilMs = sample.validUntilMs ?? (knownMs > 0 ? knownMs : Number.POSITIVE_INFINITY);
    const isLate = sample.isHeld && sample.atMs >= validUntilMs;
    findings.decide(
      acquire.lockName,
      [acquire, sample],
      isLate ? `S4a: held ${showMs(sample.atMs - validUntilMs)} past its validity` : undefined,
    );
    if (over !== undefined)
      findings.decide(
        acquire.lockName,
        [acquire, over, sample],
        sample.isHeld ? `S4b: held at ${showMs(sample.atMs)}, after it was over at ${showMs(over.atMs)}` : undefined,
      );
    if (!sample.isHeld) over ??= sample;
  }
}

function signalIsDue(
  findings: Findings,
  { acquire, releasedMs, validUntilMs }: Lease,
  turns: readonly Turn[],
  lost: Lost | undefined,
  endMs: number,
  { marginMs, epsMs }: LoudLossOptions,
): void {
  const markMs = validUntilMs - marginMs;
  if (acquire.validUntilMs === null || releasedMs <= markMs) return;
  const turn = firstFrom(turns, markMs);
  // A process that never ran again, or released in that turn, had no time to be notified.
  if (turn === undefined || releasedMs <= turn.endedMs + epsMs) return;
  // A record that ends before that does not show whether it was notified.
  if (lost === undefined && endMs < turn.endedMs + epsMs) return;
  const isLate = lost === undefined || lost.atMs > turn.endedMs + epsMs;
  const came = lost === undefined ? "never came" : `came at ${showMs(lost.atMs)}`;
  findings.decide(
    acquire.lockName,
    lost === undefined ? [acquire, turn] : [acquire, turn, lost],
    isLate ? `S4c: the signal ${came}, due by ${showMs(turn.endedMs)}` : undefined,
  );
}

/** The first turn that began at or after the mark, by binary search, because a long run has many turns. */
function firstFrom(turns: readonly Turn[], markMs: number): Turn | undefined {
  let low = 0;
  let high = turns.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((turns[middle] as Turn).beganMs < markMs) low = middle + 1;
    else high = middle;
  }
  return turns[low];
}

/** Intervals longer than `moreThanMs` in which a process did not run, or ran a single task. */
function pausesOf(turns: readonly Turn[], moreThanMs: number): { readonly pause: Turn; readonly turn: Turn }[] {
  return turns
    .flatMap((turn, index) => {
      const previous = turns[index - 1];
      const gap = previous && { turn, pause: { ...turn, beganMs: previous.endedMs, endedMs: turn.beganMs } };
      return gap === undefined ? [{ turn, pause: turn }] : [gap, { turn, pause: turn }];
    })
    .filter(({ pause }) => pause.endedMs - pause.beganMs > moreThanMs);
}

function pausesShow(
  findings: Findings,
  { acquire, later, samples }: Lease,
  pauses: readonly { readonly pause: Turn; readonly turn: Turn }[],
): void {
  const extended = later.filter(({ verb, outcome }) => verb === "extend" && outcome === "ok");
  const lengths = [acquire, ...extended].map(({ args }) => args.leaseMs ?? Number.POSITIVE_INFINITY);
  const leaseMs = Math.max(...lengths);
  for (const { pause, turn } of pauses) {
    const { beganMs, endedMs } = pause;
    // Replies are received in turns, so an extend that returned within it means that turns are missing in the record.
    const ran = extended.some(({ returnMs }) => returnMs > beganMs && returnMs < endedMs);
    if (endedMs - beganMs <= leaseMs || beganMs < acquire.returnMs || ran) continue;
    const first = samples.find(({ atMs }) => atMs >= endedMs);
    if (first === undefined) continue;
    findings.decide(
      acquire.lockName,
      [acquire, turn, first],
      first.isHeld ? `S4d: held after a pause of ${showMs(endedMs - beganMs)}` : undefined,
    );
  }
}
