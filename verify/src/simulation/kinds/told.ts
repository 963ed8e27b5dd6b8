/**
 * The time by which a waiter must be notified that it need not wait any longer.
 *
 * A message tells it, at once. Where the message was lost, or nobody listened, the next question of the waiter does: that is
 * made within one re-check of that fault's end, and from then on it listens again.
 */
import { hindrances } from "../faults.js";
import type { SimulatedProcess } from "../process.js";
import type { World } from "../world.js";

/** With fair weather a waiter asks again after 3 s. */
export const RECHECK_MS = 3_100;
/**
 * How long after the decision everybody has returned: a message of 10 ms at most, a question about it, and what is asked of
 * whom broke it.
 */
const TOLD_MS = 80;

/** What a caller waited for, and when it was decided. */
export interface Decided {
  readonly process: SimulatedProcess;
  /** When its call began; -Infinity if that is not known. */
  readonly callMs: number;
  readonly decidedMs: number;
}

/**
 * When the call has to have returned. Only what went wrong before that, for its process or on the server, makes it later; also
 * before the call, as long as a question of the process that was lost then is still waited for by all.
 */
export function toldByMs({ setup }: World, { process, callMs, decidedMs }: Decided): number {
  // A question that was lost is given up after its time-out, and asked again.
  const askedAgainMs = process.longestTrueMs(RECHECK_MS + 2 * setup.commandTimeoutMs);
  const givenUpMs = process.longestTrueMs(setup.commandTimeoutMs);
  let untilMs = Math.max(callMs, decidedMs) + TOLD_MS;
  for (const { beganMs, endedMs } of hindrances(setup, process)) {
    if (beganMs <= untilMs && endedMs + givenUpMs >= callMs)
      untilMs = Math.max(untilMs, endedMs + askedAgainMs + TOLD_MS);
  }
  return untilMs;
}
