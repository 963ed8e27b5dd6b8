/**
 * How a run comes to its start: look at the marker, wait for the jitter, take the lock, set the marker under it.
 *
 * The rule is the marker's (`period-marker/start.lua`): what is here decides who asks, and when to stop asking. Invariant: whoever
 * ends up without a run has set no marker, unless an answer was lost for good.
 */
import { AcquireTimeoutError, type Holdfast, type Lease, LeaseLostError, type Lock, StoreError } from "../../index.js";
import { delay, type Session } from "../../internal.js";
import { type LastRun, lookAtPeriod, type PeriodStart, startOfPeriod } from "../../period-marker/index.js";
import { type Refusal, refusalOf } from "../refusal.js";
import type { ResolvedScheduled } from "./options.js";

/** Where a job runs. */
export interface StartPlace {
  readonly holdfast: Holdfast;
  readonly name: string;
  readonly lock: Lock;
  /** Of the Holdfast: when that closes, all pauses here end. */
  readonly session: Session;
}

/** A run that may begin: its marker is set, and its lease is held. */
export interface Begun {
  readonly lease: Lease;
  readonly marker: Extract<PeriodStart, { outcome: "started" }>;
}

/** When it was called, in ms since 1970 by the server's clock as far as it has answered, and what came of it. */
export interface Start {
  readonly calledAtMs: number;
  readonly found: Begun | Refusal;
}

/** Pauses before the marker is asked for again, in ms: the first answer may have been lost with its connection. */
const AGAIN_AFTER_MS = [20, 100, 500];
/** Pauses of who waits for a holder without a marker, in ms: the first is about what it takes to set one. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;

/** @throws ClosedError, CapacityMismatchError, UnsupportedError; the reason of `signal`. Nothing is held, and no marker is set */
export async function start(place: StartPlace, options: ResolvedScheduled): Promise<Start> {
  const { session, name } = place;
  let calledAtMs = session.runtime.wallMs();
  let lease: Lease | undefined;
  try {
    options.signal?.throwIfAborted();
    const looked = await lookAtPeriod(place.holdfast, place.name, { every: options.everyMs });
    // From before the jitter, or it would count for the time between two runs.
    calledAtMs = looked.nowMs;
    const done = alreadyDone(looked, calledAtMs);
    if (done !== undefined) return { calledAtMs, found: done };
    options.signal?.throwIfAborted();
    if (options.jitterMaxMs > 0) {
      await delay(session, name, session.runtime.random() * options.jitterMaxMs, options.signal);
    }
    const taken = await take(place, options, calledAtMs);
    if ("reason" in taken) return { calledAtMs, found: taken };
    lease = taken;
    options.signal?.throwIfAborted();
    const marker = await mark(place, lease, options.everyMs, calledAtMs);
    // The answer may have taken longer than the lease; then nothing is begun under it.
    if (marker.outcome === "started") lease.assertHeld();
    if (marker.outcome === "started") return { calledAtMs, found: { lease, marker } };
    await lease.release().catch(() => {});
    return { calledAtMs, found: refusedFor(marker.lastRun, marker.opensAtMs, calledAtMs) };
  } catch (error) {
    await lease?.release().catch(() => {});
    // What the caller has given as its reason is the caller's, whatever it is.
    if (options.signal?.aborted === true && error === options.signal.reason) throw error;
    // The lease was over before anything was begun under it, so that is no loss.
    const refusal: Refusal | undefined =
      error instanceof LeaseLostError ? { outcome: "refused", reason: "unavailable", error } : refusalOf(error);
    if (refusal === undefined) throw error;
    return { calledAtMs, found: refusal };
  }
}

/**
 * Takes the lock, or says who has it.
 *
 * Whoever has it without having set the marker is about to set it, or to see that it is set, or has died just then; or uses the
 * lock for something else. And a run that has ended may hold it for its `minHoldMs`, or because its release was not answered. Each
 * is waited for, for as long as a lease lasts: it may be that nobody else runs this time.
 */
async function take(
  { holdfast, name, lock, session }: StartPlace,
  { everyMs, leaseMs, maxHoldMs, label, signal }: ResolvedScheduled,
  calledAtMs: number,
): Promise<Lease | Refusal> {
  const { runtime } = session;
  const givesUpAtMs = runtime.monotonicMs() + leaseMs;
  const wish = { leaseMs, maxHoldMs, label, renew: true, throughPause: false, ...(signal && { signal }) };
  for (let againAfterMs = FIRST_PAUSE_MS; ; againAfterMs = Math.min(LONGEST_PAUSE_MS, 2 * againAfterMs)) {
    try {
      // It does not queue: what it waits for is the marker as much as the lock. Its claim is its own, so that the owner tells this run
      // from others of this process.
      return await lock.acquire({ ...wish, waitMs: 0 });
    } catch (error) {
      if (!(error instanceof AcquireTimeoutError)) throw error;
      const refusal = refusalOf(error);
      const looked = await lookAtPeriod(holdfast, name, { every: everyMs });
      const done = alreadyDone(looked, calledAtMs);
      if (done !== undefined) return done;
      const { lastRun } = looked;
      const { holder } = error;
      const isRun = holder !== undefined && holder.owner === lastRun?.owner && lastRun.endedAtMs === undefined;
      if (refusal !== undefined && (isRun || runtime.monotonicMs() >= givesUpAtMs)) return refusal;
    }
    await delay(session, name, againAfterMs, signal);
  }
}

/** Sets the marker; an answer that is lost is asked for again, and is the same. @throws StoreError, LeaseLostError */
async function mark(
  { holdfast, name, session }: StartPlace,
  lease: Lease,
  everyMs: number,
  readAtMs: number,
): Promise<PeriodStart> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await startOfPeriod(holdfast, lease, { every: everyMs, readAtMs });
    } catch (error) {
      const againAfterMs = AGAIN_AFTER_MS[tries];
      if (!(error instanceof StoreError) || !error.transient || againAfterMs === undefined) throw error;
      await delay(session, name, againAfterMs, undefined);
    }
  }
}

/** The refusal, if by that look somebody has run at the time of this call. */
function alreadyDone(
  { lastRun, opensAtMs }: { readonly lastRun: LastRun | undefined; readonly opensAtMs: number | undefined },
  calledAtMs: number,
): Refusal | undefined {
  if (lastRun === undefined || opensAtMs === undefined || calledAtMs >= opensAtMs) return undefined;
  return refusedFor(lastRun, opensAtMs, calledAtMs);
}

function refusedFor(run: LastRun, opensAtMs: number, calledAtMs: number): Refusal {
  const { owner, token, host, pid, clientName, label, startedAtMs } = run;
  return {
    outcome: "refused",
    reason: "already-done",
    holder: { owner, token, host, pid, clientName, label, sinceAtMs: startedAtMs, leaseLeftMs: 0 },
    sinceAtMs: startedAtMs,
    leaseLeftMs: Math.max(0, opensAtMs - calledAtMs),
    ...(label === undefined ? {} : { label }),
  };
}
