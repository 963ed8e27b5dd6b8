import { type Holdfast, WaitTimeoutError } from "holdfast";
import type { Latch } from "../subject.js";

/** The latches of this library as the fault runs see them. */
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
