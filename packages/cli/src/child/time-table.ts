/**
 * Decides when to end a child that may lose its lock, as a pure function of the clocks.
 *
 * D is the end of the lease's validity: the moment to which `lease.validForMs()` counts down. That method uses two
 * clocks, takes the earlier end, and subtracts an allowance for drift. The child is asked to end at D - k - m and is
 * dead at D - m, before the server can grant the lock to another client. Nothing here depends on a timer: each call
 * uses the current readings of the clocks. So a process that was stopped immediately catches up.
 */

/** The two time spans that determine the schedule. */
export interface Times {
  /** k: time between asking the child to end and killing it, in ms. */
  readonly killAfterMs: number;
  /** m: how long before D the child must be dead, in ms. */
  readonly marginMs: number;
}

/** The state of the lease according to the clocks. */
export interface LeaseState {
  /** Time until D; 0 when D has passed. */
  readonly validForMs: number;
  /** Whether the lease was lost early: it was force-released, or the server no longer knows it. */
  readonly isLost: boolean;
}

/** What to do to the child now. */
export type Reaction = "none" | "stop" | "kill";

/** After a loss, the next holder may already be working, so the child gets at most this grace period, whatever k is. */
const LONGEST_AFTER_LOSS_MS = 1_000;
const LONGEST_MARGIN_MS = 1_000;
const LONGEST_DEFAULT_GRACE_MS = 5_000;

/** The k that applies if no value was given. */
export function defaultKillAfterMs(leaseMs: number): number {
  return Math.min(LONGEST_DEFAULT_GRACE_MS, leaseMs / 4);
}

/** The m for a lease of this length. */
export function marginOf(leaseMs: number): number {
  return Math.min(LONGEST_MARGIN_MS, leaseMs / 20);
}

/**
 * Returns what is due now.
 *
 * @param stoppedForMs  how long ago the child was asked to end because of the lock; undefined if it was not asked
 */
export function reactionTo(
  { validForMs, isLost }: LeaseState,
  stoppedForMs: number | undefined,
  { killAfterMs, marginMs }: Times,
): Reaction {
  const isOver = isLost || validForMs <= 0;
  if (stoppedForMs === undefined) {
    if (isOver) return "stop";
    // The child should have been asked to end at D - k - m. Now no time is left for that.
    if (validForMs <= marginMs) return "kill";
    return validForMs <= killAfterMs + marginMs ? "stop" : "none";
  }
  const graceMs = isOver ? Math.min(killAfterMs, LONGEST_AFTER_LOSS_MS) : killAfterMs;
  return stoppedForMs >= graceMs || (!isOver && validForMs <= marginMs) ? "kill" : "none";
}

/**
 * The time in ms until the result of `reactionTo` may change; 0 or less if it may change now. Use it only to schedule
 * the next check.
 */
export function nextCheckMs(
  { validForMs, isLost }: LeaseState,
  stoppedForMs: number | undefined,
  { killAfterMs, marginMs }: Times,
): number {
  const untilDeadMs = validForMs - marginMs;
  if (stoppedForMs === undefined) return untilDeadMs - killAfterMs;
  if (isLost || validForMs <= 0) return Math.min(killAfterMs, LONGEST_AFTER_LOSS_MS) - stoppedForMs;
  return Math.min(killAfterMs - stoppedForMs, untilDeadMs);
}
