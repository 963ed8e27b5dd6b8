import { BrokenBarrierError, type Holdfast } from "holdfast";
import type { Barrier } from "../subject.js";

/** Short, so that a crashed party breaks its generation within a run, but longer than the stalls of a busy machine. */
const LEASE_MS = 1_000;

/** Adapts Holdfast's barriers to the fault runs. */
export function barrierOf(holdfast: Holdfast): Barrier {
  return {
    async arrive(lockName, parties, waitMs) {
      try {
        const passage = await holdfast.barrier(lockName, { parties }).arrive({ waitMs, leaseMs: LEASE_MS });
        return { what: "passed", ...passage };
      } catch (error) {
        if (error instanceof BrokenBarrierError) return { what: "broke", generation: error.generation };
        throw error;
      }
    },
    reset: (lockName, parties) => holdfast.barrier(lockName, { parties }).reset(),
  };
}
