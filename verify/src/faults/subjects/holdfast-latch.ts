import { type Holdfast, WaitTimeoutError } from "holdfast";
import type { Latch } from "../subject.js";

/** Adapts Holdfast's latches to the fault runs. */
export function latchOf(holdfast: Holdfast): Latch {
  return {
    setCount: (lockName, count) => holdfast.countDownLatch(lockName).trySetCount(count),
    countDown: (lockName, callerId) =>
      holdfast.countDownLatch(lockName).countDown(1, callerId === undefined ? {} : { callerId }),
    count: (lockName) => holdfast.countDownLatch(lockName).count(),
    async await(lockName, waitMs) {
      try {
        await holdfast.countDownLatch(lockName).await({ waitMs });
        return true;
      } catch (error) {
        if (error instanceof WaitTimeoutError) return false;
        throw error;
      }
    },
  };
}
