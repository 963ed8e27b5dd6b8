/** The end of a hold after its work: given back, or left to last for `minHoldMs`. */
import { LeaseLostError, StoreError } from "../../core/errors.js";
import type { Lease } from "../../core/lease.js";
import type { Runtime } from "../../core/runtime.js";
import type { Holdfast } from "../../holdfast.js";

/** Of `extend`. */
const SHORTEST_LEASE_MS = 100;

/**
 * Gives the lease back, and not before `restMs` are over; nobody waits for that here.
 *
 * @returns the loss, if it was lost; undefined if not, or if the server did not answer and it was held to the end as far as
 *          is known: then nobody else held it meanwhile, and it ends by itself
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
    if (error instanceof LeaseLostError) return error;
    if (!(error instanceof StoreError)) throw error;
    if (wasHeld) return undefined;
    return new LeaseLostError(lease.name, { reason: "expired", token: lease.token, owner: lease.owner });
  }
}

/**
 * Leaves it on the server without us, so that neither the end of this process nor a `close` frees it sooner. A lease is never
 * made shorter: one that lasts too long is given back when it is time, if this process is still there.
 */
async function leave(holdfast: Holdfast, runtime: Runtime, lease: Lease, restMs: number): Promise<void> {
  if (restMs > lease.validForMs()) {
    await lease.extend(Math.max(SHORTEST_LEASE_MS, Math.ceil(restMs))).catch((error: unknown) => {
      // Without an answer it may end sooner, and its work is done.
      if (!(error instanceof StoreError)) throw error;
    });
    lease.export();
    return;
  }
  const exported = lease.export();
  const end = async (): Promise<void> => {
    const ours = await holdfast.adopt(exported);
    await ours.release();
  };
  // Whatever goes wrong with it, the lease ends by itself.
  runtime.startTimer(() => void end().catch(() => {}), restMs, false);
}
