import { type Holdfast, WaitTimeoutError } from "holdfast";
import type { Connection } from "../subject.js";

/** It is renewed; of a process that is killed it is soon over. */
const LEASE_MS = 1_000;

/** The conditions of this library as the fault runs see them. */
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
