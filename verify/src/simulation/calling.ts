/** Calls for a lock: their options, and L4 (whether they settle in time). */
import { AcquireTimeoutError, LockError, WaitTimeoutError } from "holdfast";
import type { Arguments } from "../history/index.js";
import type { Attempt } from "./attempt.js";
import { labelOf } from "./crowds.js";
import type { Plan } from "./plan.js";
import type { Scene } from "./scene.js";

/** The options of a call that all kinds accept. */
export interface Options {
  readonly leaseMs: number;
  readonly renew: boolean;
  readonly label: string;
  readonly maxHoldMs?: number;
}

/** A call may exceed its deadline by this much, in addition to the timeouts of its last requests. */
const SETTLE_MS = 250;

/** Calls for the lock. @returns undefined if it was not granted */
export async function call<Held>(
  scene: Scene,
  make: (signal: AbortSignal | undefined) => Promise<Held | null>,
  waitMs: number = scene.session.isTry ? 0 : scene.session.waitMs,
  claims?: Arguments,
): Promise<{ readonly lease: Held; readonly attempt: Attempt } | undefined> {
  const { judge, session, member, world } = scene;
  const { process } = member;
  const patience = Number.isFinite(waitMs) ? { waitMs: process.longestTrueMs(waitMs) } : {};
  const attempt = judge.called(process, session, scene.lockName, claims && { ...claims, ...patience });
  const controller = session.abortAfterMs === null ? undefined : new AbortController();
  let abortedMs = Infinity;
  const abortion =
    controller &&
    process.startTimer(
      () => {
        abortedMs = world.nowMs;
        if (attempt.operation !== undefined)
          attempt.operation.args = { ...attempt.operation.args, abortedAtMs: world.nowMs };
        controller.abort(new Error("the caller has no time left"));
      },
      session.abortAfterMs ?? 0,
      "abort",
    );
  try {
    const lease = await make(controller?.signal);
    checkSettled(scene, attempt, waitMs, abortedMs);
    forgiveFrozen(attempt);
    if (lease !== null) return { lease, attempt };
    judge.ended(attempt, "no", "busy");
  } catch (error) {
    const hasGivenUp = error instanceof AcquireTimeoutError || error instanceof WaitTimeoutError;
    forgiveFrozen(attempt);
    if (hasGivenUp || error === controller?.signal.reason) judge.ended(attempt, "no", "gave-up");
    else judge.ended(attempt);
    checkSettled(scene, attempt, waitMs, abortedMs);
    // If a steal loses the lock before its callback begins, the error is the one of the Web Locks specification.
    const isStolenAgain = session.way === "steal" && error instanceof DOMException && error.name === "AbortError";
    if (!(error instanceof LockError) && !isStolenAgain && error !== controller?.signal.reason) {
      judge.violated("L4", `${process.name}: a call for ${scene.lockName} ended with ${String(error)}`);
    }
  } finally {
    abortion?.cancel();
  }
  return undefined;
}

/** Excuses a process that was frozen for not settling in time. */
function forgiveFrozen({ operation, process, callMs }: Attempt): void {
  if (operation === undefined || process.resumedAtMs < callMs) return;
  const { waitMs: _, abortedAtMs: __, ...args } = operation.args;
  operation.args = args;
}

/** How long after its deadline a call may settle: the timeouts of its remaining requests. */
export function settleMs({ commandTimeoutMs, kind }: Plan): number {
  // A candidate that wins stores its value, and resigns if that fails; a multi-lock releases its members; a
  // count-down is sent for two timeouts, and its last request may take another one.
  const requests = ["election", "multi-lock", "count-down-latch"].includes(kind) ? 4 : 2;
  return requests * (commandTimeoutMs + 50) + SETTLE_MS;
}

/** L4: a call with a wait limit settles in time, and immediately after an abort. */
function checkSettled(
  { member, world, judge, lockName }: Scene,
  attempt: Attempt,
  waitMs: number,
  abortedMs: number,
): void {
  const { process } = member;
  if (process.resumedAtMs >= attempt.callMs) return;
  const limitMs = process.longestTrueMs(waitMs + settleMs(world.setup));
  const tookMs = world.nowMs - attempt.callMs;
  if (tookMs > limitMs) judge.violated("L4", `${process.name}: a call for ${lockName} took ${tookMs.toFixed(0)} ms`);
  if (world.nowMs > abortedMs + process.longestTrueMs(settleMs(world.setup)) && waitMs > 0) {
    judge.violated("L4", `${process.name}: an aborted call for ${lockName} went on`);
  }
}

/** The arguments of the session's call, for its record. */
export function claimOf({ session, world }: Scene): Arguments {
  const { leaseMs, amount, way } = session;
  if (way === "steal") return { leaseMs, mode: "write", steals: true };
  if (world.setup.kind === "semaphore") return { leaseMs, permits: amount };
  return world.setup.kind === "read-write-lock" ? { leaseMs, mode: amount <= 2 ? "read" : "write" } : { leaseMs };
}

/** The options of a session's call. */
export function optionsOf({ session }: Scene): Options & { readonly waitMs: number } {
  const { leaseMs, renew, waitMs, end, holdMs } = session;
  const options = { leaseMs, renew, waitMs, label: labelOf(session) };
  // Limits a hold that is never released; otherwise it would be renewed forever.
  return end === "drop" && renew ? { ...options, maxHoldMs: Math.max(100, holdMs) } : options;
}
