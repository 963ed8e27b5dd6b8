/** The end of a hold after its command: given back, or left to last for `--min-hold`. */

import { plain } from "@holdfast/console/text";
import { type Lease, LeaseLostError, StoreError } from "holdfast";
import type { SignalDesk } from "../../child/signals.js";
import { formatMs, sleep } from "../../frame/durations.js";
import type { RunPlan } from "./flags.js";
import type { Report } from "./report.js";

/** How it was ended: given back, left on the server to end by itself, or lost without our noticing. */
export type GivenBack = "released" | "left" | "lost";

/** Redis may be what failed, and whoever waits for our exit code should not wait for it too. */
const LONGEST_GOODBYE_MS = 500;

/**
 * Gives the lease back, and not before `--min-hold`. Never rejects.
 *
 * @param heldMs  since the grant
 */
export async function giveBack(
  lease: Lease,
  plan: RunPlan,
  heldMs: number,
  report: Report,
  desk: SignalDesk,
): Promise<GivenBack> {
  const restMs = Math.ceil(plan.minHoldMs - heldMs);
  if (restMs > 0 && (await isKept(lease, restMs, desk))) {
    report.event("released", { outcome: "left", leftForMs: restMs });
    report.detail(`${plain(plan.name)} stays held for ${formatMs(restMs)} more (--min-hold)`);
    return "left";
  }
  try {
    const outcome = await lease.release();
    report.event("released", { outcome });
    return "released";
  } catch (error) {
    if (error instanceof LeaseLostError) return "lost";
    report.event("released", { outcome: "unknown" });
    const why = error instanceof StoreError ? error.message : String(error);
    report.warn(`${plain(plan.name)} may still be held, for ${formatMs(plan.leaseMs)} at most: ${why}`);
    return "released";
  }
}

/**
 * Makes it last for `restMs` more without us; or waits here, where that is less than what the lease has left, since a lease
 * on the server is never made shorter.
 *
 * @returns whether it is left to end by itself
 */
async function isKept(lease: Lease, restMs: number, desk: SignalDesk): Promise<boolean> {
  if (restMs > lease.validForMs()) {
    // Without an answer it may end sooner; there is nobody left whom that could harm.
    await lease.extend(Math.max(restMs, 100)).catch(() => {});
    return true;
  }
  const leaves = new AbortController();
  desk.take(() => leaves.abort());
  await sleep(restMs, leaves.signal);
  return leaves.signal.aborted;
}

/** Tells the server that we are gone, if it hears it soon: the lease is over for us either way. */
export async function sayGoodbye(lease: Lease): Promise<void> {
  await Promise.race([lease.release().catch(() => {}), sleep(LONGEST_GOODBYE_MS)]);
}
