import type { Runtime } from "holdfast/internal";

/** Resolves when `work` has settled, or after `longestMs` milliseconds. Never rejects. */
export function settledWithin(runtime: Runtime, work: Promise<unknown>, longestMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = runtime.startTimer(resolve, longestMs, true);
    const end = (): void => {
      timer.cancel();
      resolve();
    };
    work.then(end, end);
  });
}
