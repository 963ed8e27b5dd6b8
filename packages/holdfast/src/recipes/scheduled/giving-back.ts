/** The end of a hold after its work: given back, or left to last for `minHoldMs`. */
import { type Holdfast, type Lease, LeaseLostError, StoreError } from "../../index.js";
import type { Runtime } from "../../internal.js";

/** Of `extend`. */
const SHORTEST_LEASE_MS = 100;
/** Before it is given back again, where the server did not answer. */
const AGAIN_AFTER_MS = 500;

/**
 * Gives the lease back, and not before `restMs` are over; nobody waits for that here.
 *
 * @returns the loss, if it was lost; undefined if not, or if it was held to the end of the work and the server did not answer after
 *          that: then nobody else held it meanwhile, and it ends by itself
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
    // Held to the end of the work, and over since: nobody was there to be overlapped with.
    if (error instanceof LeaseLostError) return wasHeld && error.reason === "expired" ? undefined : error;
    if (!(error instanceof StoreError)) throw error;
    if (wasHeld) return undefined;
    return new LeaseLostError(lease.name, { reason: "expired", token: lease.token, owner: lease.owner });
  }
}

/**
 * Leaves it on the server without us, so that neither the end of this process nor a `close` frees it sooner. A lease is never
 * made shorter: one that may last too long is given back when it is time, if this process is still there.
 */
async function leave(holdfast: Holdfast, runtime: Runtime, lease: Lease, restMs: number): Promise<void> {
  const endsAtMs = runtime.monotonicMs() + restMs;
  let lastsAsLong = false;
  if (restMs > lease.validForMs()) {
    try {
      await lease.extend(Math.max(SHORTEST_LEASE_MS, Math.ceil(restMs)));
      lastsAsLong = true;
    } catch (error) {
      // Without an answer it may end sooner or, where the request is late, later.
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
      // By then it has ended by itself.
      const isWorthwhile = error instanceof StoreError && error.transient && runtime.monotonicMs() < overAtMs;
      if (isWorthwhile) runtime.startTimer(() => void end(), AGAIN_AFTER_MS, false);
    }
  };
  runtime.startTimer(() => void end(), Math.max(0, endsAtMs - runtime.monotonicMs()), false);
}
