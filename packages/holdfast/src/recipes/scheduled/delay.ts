import type { Runtime } from "../../core/runtime.js";

/**
 * Resolves after `delayMs`; it keeps the process alive, since somebody waits for what comes then.
 *
 * @throws the reason of `signal`, if it aborts before
 */
export function delay(runtime: Runtime, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const abort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = runtime.startTimer(
      () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      },
      delayMs,
      true,
    );
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Resolves when `work` is settled, or it takes longer than that. */
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
