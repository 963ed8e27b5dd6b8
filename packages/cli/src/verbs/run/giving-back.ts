/** Ends a hold after its command: releases the lock, or leaves it to expire for `--min-hold`. */

import { plain } from "@holdfast/console/text";
import { type Lease, LeaseLostError, StoreError } from "holdfast";
import type { SignalDesk } from "../../child/signals.js";
import { formatMs, sleep } from "../../frame/durations.js";
import type { RunPlan } from "./flags.js";
import type { Report } from "./report.js";

/** How the hold ended: released, left on the server to expire, or lost without the run noticing earlier. */
export type GivenBack = "released" | "left" | "lost";

/** Redis may be the cause of the loss, and a caller that waits for the exit code should not also wait for Redis. */
const LONGEST_GOODBYE_MS = 500;

/**
 * Releases the lease, but not before `--min-hold`. Never rejects.
 *
 * @param heldMs  time since the grant
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
    report.warn(`${plain(plan.name)} may still be held for up to ${formatMs(plan.leaseMs)}: ${why}`);
    return "released";
  }
}

/**
 * Extends the lease to last `restMs` and leaves it on the server. If the lease already lasts longer, waits here
 * instead, because a lease is never shortened.
 *
 * @returns whether the lease was left to expire
 */
async function isKept(lease: Lease, restMs: number, desk: SignalDesk): Promise<boolean> {
  if (restMs > lease.validForMs()) {
    // If the server does not reply, the lease may end sooner. That harms no one, because the command has ended.
    await lease.extend(Math.max(restMs, 100)).catch(() => {});
    return true;
  }
  const leaves = new AbortController();
  desk.take(() => leaves.abort());
  await sleep(restMs, leaves.signal);
  return leaves.signal.aborted;
}

/** Tries briefly to release the lease on the server. The lease is over for this run in any case. */
export async function sayGoodbye(lease: Lease): Promise<void> {
  await Promise.race([lease.release().catch(() => {}), sleep(LONGEST_GOODBYE_MS)]);
}
