/** Ends the hold of a run after its work: releases the lease, or leaves it held for the rest of `minHoldMs`. */
import { type Holdfast, type Lease, LeaseLostError, StoreError } from "holdfast";
import type { Runtime } from "holdfast/internal";

/** Shortest lease that `extend` accepts, in milliseconds. */
const SHORTEST_LEASE_MS = 100;
/** Delay before retrying a release that got no reply, in milliseconds. */
const AGAIN_AFTER_MS = 500;

/**
 * Makes the lease end once `restMs` milliseconds have passed, or now if `restMs` is 0 or less. Returns without waiting
 * for that time to pass.
 *
 * @returns the loss if the lease was lost, otherwise undefined. Also undefined if the lease was held to the end of the
 *          work and the server did not reply after that: no other holder overlapped with the work, and the lease
 *          expires on its own
 */
export async function giveBack(
  holdfast: Holdfast,
  runtime: Runtime,
  lease: Lease,
  restMs: number,
): Promise<LeaseLostError | undefined> {
  const wasHeld = lease.validForMs() > 0;
  try {
    if (restMs > 0 && wasHeld) await leave(holdfast, runtime, lease, restMs);
    else await lease.release();
    return undefined;
  } catch (error) {
    // The lease was held to the end of the work and expired after it, so no other holder overlapped with the work.
    if (error instanceof LeaseLostError) return wasHeld && error.reason === "expired" ? undefined : error;
    if (!(error instanceof StoreError)) throw error;
    if (wasHeld) return undefined;
    return new LeaseLostError(lease.name, { reason: "expired", token: lease.token, owner: lease.owner });
  }
}

/**
 * Detaches the lease from this process, so that neither the end of the process nor `close` releases it early. A lease
 * is never shortened. So if the lease may last longer than `restMs`, this process releases it after that time, unless
 * the process has ended by then.
 */
async function leave(holdfast: Holdfast, runtime: Runtime, lease: Lease, restMs: number): Promise<void> {
  const endsAtMs = runtime.monotonicMs() + restMs;
  let lastsAsLong = false;
  if (restMs > lease.validForMs()) {
    try {
      await lease.extend(Math.max(SHORTEST_LEASE_MS, Math.ceil(restMs)));
      lastsAsLong = true;
    } catch (error) {
      // Without a reply, the lease may end earlier than intended or, if the request arrives late, later.
      if (!(error instanceof StoreError)) throw error;
    }
  }
  const exported = lease.export();
  if (lastsAsLong) return;
  const overAtMs = endsAtMs + exported.leaseMs;
  const end = async (): Promise<void> => {
    try {
      const ours = await holdfast.adopt(exported);
      await ours.release();
    } catch (error) {
      // After `overAtMs` the lease has expired on its own.
      const isWorthwhile = error instanceof StoreError && error.transient && runtime.monotonicMs() < overAtMs;
      if (isWorthwhile) runtime.startTimer(() => void end(), AGAIN_AFTER_MS, false);
    }
  };
  runtime.startTimer(() => void end(), Math.max(0, endsAtMs - runtime.monotonicMs()), false);
}
