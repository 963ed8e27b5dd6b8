import type { CloseOptions, CloseOutcome } from "./core/closing.js";
import type { Holdfast } from "./holdfast.js";
import { graceOf } from "./holdfast-options.js";

/** How to close when a signal comes. */
export interface CloseOnSignalOptions extends CloseOptions {
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
  { onClosed, ...options }: CloseOnSignalOptions = {},
): () => void {
  graceOf(options);
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
    void holdfast.close(options).then((outcome) => {
      stop();
      onClosed?.(outcome);
    });
  };
  for (const signal of signals) process.on(signal, close);
  return stop;
}
