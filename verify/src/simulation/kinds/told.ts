/**
 * By when whoever waits for others has to hear that it need not wait any longer.
 *
 * A message tells it, at once. Where the message was lost, or nobody listened, the next question of the waiter does: that is
 * made within one re-check of the last fault's end, and from then on it listens again.
 */
import { lastEndMs } from "../faults.js";
import type { SimulatedProcess } from "../process.js";
import { RECHECK_MS } from "../progress.js";
import type { World } from "../world.js";

/**
 * How long after the decision everybody has returned: a message of 10 ms at most, a question about it, and what is asked of
 * whom broke it.
 */
const TOLD_MS = 80;

/** When a call of `process` that began at `callMs` has to have returned, if it was decided at `decidedMs`. */
export function toldByMs(
  { setup }: World,
  {
    process,
    callMs,
    decidedMs,
  }: { readonly process: SimulatedProcess; readonly callMs: number; readonly decidedMs: number },
): number {
  const faultsEndMs = lastEndMs(setup);
  // A question that was lost is given up after its time-out, and asked again.
  const askedMs =
    callMs > faultsEndMs ? callMs : faultsEndMs + process.longestTrueMs(RECHECK_MS + 2 * setup.commandTimeoutMs);
  return Math.max(decidedMs, askedMs) + TOLD_MS;
}
