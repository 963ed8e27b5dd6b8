/**
 * When a child is ended that may lose its lock, as one function of the clocks.
 *
 * D is the end of validity: what `lease.validForMs()` counts down to, by two clocks, whichever ends first, less the
 * allowance for drift. The child is asked to end at D - k - m and is dead at D - m, before the server can grant the lock to
 * anybody else. Nothing here remembers a timer: whoever asks says what the clocks say now, so a process that was stopped
 * and goes on late does at once what is due.
 */

/** The two spans that the time table is made of. */
export interface Times {
  /** k: between asking the child to end and ending it, in ms. */
  readonly killAfterMs: number;
  /** m: how long before D the child is dead, in ms. */
  readonly marginMs: number;
}

/** What the clocks say. */
export interface LeaseState {
  /** Until D; 0 when it is over. */
  readonly validForMs: number;
  /** The lease was lost before its time: released by force, or the server no longer knows it. */
  readonly isLost: boolean;
}

/** What is to be done to the child now. */
export type Reaction = "none" | "stop" | "kill";

/** After a loss, whoever holds next may have begun: the child gets no more than this, whatever k is. */
const LONGEST_AFTER_LOSS_MS = 1_000;
const LONGEST_MARGIN_MS = 1_000;
const LONGEST_DEFAULT_GRACE_MS = 5_000;

/** The k that is used where none was given. */
export function defaultKillAfterMs(leaseMs: number): number {
  return Math.min(LONGEST_DEFAULT_GRACE_MS, leaseMs / 4);
}

/** The m of a lease. */
export function marginOf(leaseMs: number): number {
  return Math.min(LONGEST_MARGIN_MS, leaseMs / 20);
}

/**
 * What is due.
 *
 * @param stoppedForMs  how long ago the child was asked to end because of the lock; undefined if it was not
 */
export function reactionTo(
  { validForMs, isLost }: LeaseState,
  stoppedForMs: number | undefined,
  { killAfterMs, marginMs }: Times,
): Reaction {
  const isOver = isLost || validForMs <= 0;
  if (stoppedForMs === undefined) {
    if (isOver) return "stop";
    // It should have been asked at D - k - m, and there is no time left to ask.
    if (validForMs <= marginMs) return "kill";
    return validForMs <= killAfterMs + marginMs ? "stop" : "none";
  }
  const graceMs = isOver ? Math.min(killAfterMs, LONGEST_AFTER_LOSS_MS) : killAfterMs;
  return stoppedForMs >= graceMs || (!isOver && validForMs <= marginMs) ? "kill" : "none";
}

/** In how many ms `reactionTo` may say something else; 0 or less if that is now. Only for choosing when to look again. */
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
