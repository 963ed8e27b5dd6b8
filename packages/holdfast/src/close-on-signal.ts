import type { CloseOutcome } from "./core/closing.js";
import type { Holdfast } from "./holdfast.js";
import { graceOf } from "./holdfast-options.js";

/** Less than Kubernetes waits before it kills, which is 30 s. */
const DEFAULT_GRACE_MS = 25_000;

/** How to close when a signal comes. */
export interface CloseOnSignalOptions {
  /**
   * Longest wait for the work under leases that are held, in ms: nothing is given back under it, and what has not ended is left to run
   * out. It must be over before whoever sent the signal loses patience, and kills. Whole milliseconds, 0 to 86 400 000.
   * @default 25_000
   */
  readonly graceMs?: number;
  /** Told when it is closed, as for a line in a log. */
  readonly onClosed?: (outcome: CloseOutcome) => void;
}

/**
 * Closes `holdfast` when one of the signals comes; when a second one comes, it waits no longer for work that runs.
 *
 * It does not end the process: what else holds it open, such as a server that listens, is for you to close, and other
 * listeners of the same signals run as well. Once it is closed these listeners are gone, so that the next signal does what it does
 * without them.
 *
 * @param signals  such as `["SIGTERM", "SIGINT"]`
 * @returns stops listening; a close that has begun goes on
 * @throws TypeError, RangeError  a wrong option
 */
export function closeOnSignal(
  holdfast: Pick<Holdfast, "close">,
  signals: readonly NodeJS.Signals[],
  { onClosed, graceMs = DEFAULT_GRACE_MS, ...others }: CloseOnSignalOptions = {},
): () => void {
  graceOf({ ...others, graceMs });
  let isClosing = false;
  const stop = (): void => {
    for (const signal of signals) process.off(signal, close);
  };
  const close = (): void => {
    if (isClosing) {
      void holdfast.close({ graceMs: 0 });
      return;
    }
    isClosing = true;
    void holdfast.close({ graceMs }).then((outcome) => {
      stop();
      onClosed?.(outcome);
    });
  };
  for (const signal of signals) process.on(signal, close);
  return stop;
}
