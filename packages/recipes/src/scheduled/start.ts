/**
 * Starts a run: reads the marker, waits for the jitter, acquires the lock and sets the marker under it.
 *
 * The script `period-marker/start.lua` decides whether a run may begin. This file decides when to call it and when to
 * give up. Invariant: a call that does not run has set no marker, unless the reply was lost or came after the lease had
 * ended.
 */
import { AcquireTimeoutError, type Holdfast, type Lease, LeaseLostError, type Lock, StoreError } from "holdfast";
import { delay, type Session } from "holdfast/internal";
import { inspectPeriod, type LastRun, type PeriodStart, startOfPeriod } from "holdfast/period-marker";
import { type Refusal, refusalOf } from "../refusal.js";
import type { ResolvedScheduled } from "./options.js";

/** The Holdfast, the lock and the name of a job. */
export interface StartPlace {
  readonly holdfast: Holdfast;
  readonly name: string;
  readonly lock: Lock;
  /** Session of the Holdfast. When it closes, all delays here end. */
  readonly session: Session;
}

/** A run that may begin: its marker is set, and its lease is held. */
export interface Begun {
  readonly lease: Lease;
  readonly marker: Extract<PeriodStart, { outcome: "started" }>;
}

/** The result of `start`: a run that may begin, or a refusal. */
export interface Start {
  /** Server time of the call in milliseconds since 1970; the local time if the server did not reply. */
  readonly calledAtMs: number;
  readonly found: Begun | Refusal;
}

/** Delays before the retries of setting the marker, in milliseconds. A reply can be lost with its connection. */
const AGAIN_AFTER_MS = [20, 100, 500];
/** First delay while waiting for a holder without a marker, in milliseconds: about the time that setting one takes. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 500;

/**
 * Starts a run, or returns why none may begin.
 *
 * @throws ClosedError, CapacityMismatchError, UnsupportedError  nothing is held
 * @throws the reason of `signal`; nothing is held
 */
export async function start(place: StartPlace, options: ResolvedScheduled): Promise<Start> {
  const { session, name } = place;
  let calledAtMs = session.runtime.wallMs();
  let lease: Lease | undefined;
  try {
    options.signal?.throwIfAborted();
    const period = await inspectPeriod(place.holdfast, place.name, { every: options.everyMs });
    // Taken before the jitter, because the jitter must not count toward the time between two runs.
    calledAtMs = period.nowMs;
    const done = alreadyDone(period, calledAtMs);
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
    // If the reply took longer than the lease, the work must not begin.
    if (marker.outcome === "started") lease.assertHeld();
    if (marker.outcome === "started") return { calledAtMs, found: { lease, marker } };
    await lease.release().catch(() => {});
    return { calledAtMs, found: refusedFor(marker.lastRun, marker.opensAtMs, calledAtMs) };
  } catch (error) {
    await lease?.release().catch(() => {});
    // The caller's own abort reason is rethrown, even if it is an error that would otherwise mean a refusal.
    if (options.signal?.aborted === true && error === options.signal.reason) throw error;
    // The lease ended before the work began, so this is a refusal and not a loss.
    const refusal: Refusal | undefined =
      error instanceof LeaseLostError ? { outcome: "refused", reason: "unavailable", error } : refusalOf(error);
    if (refusal === undefined) throw error;
    return { calledAtMs, found: refusal };
  }
}

/**
 * Acquires the lock, or returns why it is not available.
 *
 * A holder without a marker is about to set one, is about to find one, has just crashed, or uses the lock for something
 * else. A run that has ended may also still hold the lock, for its `minHoldMs` or because its release got no reply.
 * In all these cases, `take` keeps trying for the length of one lease. Otherwise, it could happen that no instance runs
 * this time.
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
      // Does not queue, because this loop waits for the marker as well as for the lock. Each call has its own claim, so
      // its owner id distinguishes this run from others in this process.
      return await lock.acquire({ ...wish, waitMs: 0 });
    } catch (error) {
      if (!(error instanceof AcquireTimeoutError)) throw error;
      const refusal = refusalOf(error);
      const period = await inspectPeriod(holdfast, name, { every: everyMs });
      const done = alreadyDone(period, calledAtMs);
      if (done !== undefined) return done;
      const { lastRun } = period;
      const { holder } = error;
      const isRun = holder !== undefined && holder.owner === lastRun?.owner && lastRun.endedAtMs === undefined;
      if (refusal !== undefined && (isRun || runtime.monotonicMs() >= givesUpAtMs)) return refusal;
    }
    await delay(session, name, againAfterMs, signal);
  }
}

/**
 * Sets the marker. Retries after a lost reply, which is safe because the server then repeats the same reply.
 *
 * @throws StoreError, LeaseLostError
 */
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

/** Returns the refusal if the marker shows that another instance has already run for this call. */
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
