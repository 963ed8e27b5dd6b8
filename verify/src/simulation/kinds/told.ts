/**
 * The time by which a waiter must be notified that its wait is over.
 *
 * Normally a message does this immediately. If the message was lost, or the process was not subscribed, the waiter's
 * next poll does. It happens within one polling interval after the fault, and then the process is subscribed again.
 */
import { hindrances } from "../faults.js";
import type { SimulatedProcess } from "../process.js";
import type { World } from "../world.js";

/** Without faults, a waiter polls every 3 s. */
export const RECHECK_MS = 3_100;
/**
 * How long after the decision all callers have returned: a message of at most 10 ms, a request about it, and the
 * requests to find out which party broke the barrier.
 */
const TOLD_MS = 80;

/** What a caller waited for, and when it was decided. */
export interface Decided {
  readonly process: SimulatedProcess;
  /** When its call began; -Infinity if unknown. */
  readonly callMs: number;
  readonly decidedMs: number;
}

/**
 * When the call must have returned. Only earlier faults of its process or of the server delay it, including faults
 * before the call if a request that was lost then is still awaited.
 */
export function toldByMs({ setup }: World, { process, callMs, decidedMs }: Decided): number {
  // A lost request times out and is sent again.
  const askedAgainMs = process.longestTrueMs(RECHECK_MS + 2 * setup.commandTimeoutMs);
  const givenUpMs = process.longestTrueMs(setup.commandTimeoutMs);
  let untilMs = Math.max(callMs, decidedMs) + TOLD_MS;
  for (const { beganMs, endedMs } of hindrances(setup, process)) {
    if (beganMs <= untilMs && endedMs + givenUpMs >= callMs)
      untilMs = Math.max(untilMs, endedMs + askedAgainMs + TOLD_MS);
  }
  return untilMs;
}
