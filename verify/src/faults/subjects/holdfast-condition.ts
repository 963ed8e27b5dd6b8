import { type Holdfast, WaitTimeoutError } from "holdfast";
import type { Connection } from "../subject.js";

/** Holdfast renews the lease, and the lease of a killed process ends soon. */
const LEASE_MS = 1_000;

/** Adapts Holdfast's conditions to the fault runs. */
export function conditionOf(holdfast: Holdfast): NonNullable<Connection["condition"]> {
  return async (lockName, act, waitMs) => {
    const mutex = holdfast.mutex(lockName);
    const condition = mutex.condition("turned");
    const lease = await mutex.acquire({ leaseMs: LEASE_MS, waitMs });
    if (act === "signal") {
      try {
        return await condition.signal(lease);
      } finally {
        await lease.release().catch(() => {});
      }
    }
    try {
      const again = await condition.wait(lease, { leaseMs: LEASE_MS, waitMs });
      await again.release().catch(() => {});
      return 1;
    } catch (error) {
      if (error instanceof WaitTimeoutError) return 0;
      throw error;
    }
  };
}
