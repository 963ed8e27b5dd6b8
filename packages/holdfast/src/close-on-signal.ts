import { constants } from "node:os";
import type { CloseOutcome } from "./core/closing.js";
import { show } from "./core/keys.js";
import type { Holdfast } from "./holdfast.js";
import { checkKnown, graceOf } from "./holdfast-options.js";

/** Less than the 30 s that Kubernetes waits before it kills a process. */
const DEFAULT_GRACE_MS = 25_000;

/** How to close when a signal arrives. */
export interface CloseOnSignalOptions {
  /**
   * How long to wait for work that runs under a lease. If the work takes longer, its lease is not released and expires
   * instead. The wait must end before the sender of the signal kills the process. Whole milliseconds, 0 to 86,400,000.
   * @default 25_000
   */
  readonly graceMs?: number | undefined;
  /** Called once the Holdfast is closed. */
  readonly onClosed?: ((outcome: CloseOutcome) => void) | undefined;
}

/**
 * Closes `holdfast` when one of the signals arrives. A second signal ends the wait for running work.
 *
 * This function does not end the process. You must close anything else that keeps the process alive, such as an HTTP
 * server. Other listeners for the same signals also run. Once `holdfast` is closed, this function's listeners are
 * removed, so the next signal has its usual effect.
 *
 * @param signals  for example `["SIGTERM", "SIGINT"]`
 * @returns a function that removes the listeners; a close that has started continues
 * @throws TypeError, RangeError  an invalid option, or `signals` is not an array of signal names; no listener is added
 * @throws Node's error for a signal that cannot be handled, such as SIGKILL; no listener is left
 */
export function closeOnSignal(
  holdfast: Pick<Holdfast, "close">,
  signals: readonly NodeJS.Signals[],
  options: CloseOnSignalOptions = {},
): () => void {
  const { onClosed, graceMs = DEFAULT_GRACE_MS } = checkKnown(options, ["graceMs", "onClosed"]);
  graceOf({ graceMs });
  // Reject a string, which would be iterated letter by letter, and unknown names, whose listener would never run.
  for (const signal of Array.isArray(signals) ? signals : [signals]) {
    if (!Array.isArray(signals) || !(signal in constants.signals)) {
      throw new TypeError(`signals must be an array of names such as "SIGTERM"; got ${show(signal)}`);
    }
  }
  if (onClosed !== undefined && typeof onClosed !== "function") {
    throw new TypeError(`onClosed must be a function; got ${show(onClosed)}`);
  }
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
  try {
    for (const signal of signals) process.on(signal, close);
  } catch (error) {
    // Remove the listeners added so far: the caller cannot, and they would suppress the default action of their
    // signals.
    stop();
    throw error;
  }
  return stop;
}
