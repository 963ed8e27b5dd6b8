import { constants } from "node:os";
import type { CloseOutcome } from "./core/closing.js";
import { show } from "./core/keys.js";
import type { Holdfast } from "./holdfast.js";
import { checkKnown, graceOf } from "./holdfast-options.js";

/** Less than Kubernetes waits before it kills, which is 30 s. */
const DEFAULT_GRACE_MS = 25_000;

/** How to close when a signal comes. */
export interface CloseOnSignalOptions {
  /**
   * Longest wait for the work under leases that are held, in ms: nothing is given back under it, and what has not ended is left to run
   * out. It must be over before whoever sent the signal loses patience, and kills. Whole milliseconds, 0 to 86 400 000.
   * @default 25_000
   */
  readonly graceMs?: number | undefined;
  /** Told when it is closed, as for a line in a log. */
  readonly onClosed?: ((outcome: CloseOutcome) => void) | undefined;
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
 * @throws TypeError, RangeError  a wrong option, or no array of signals; nothing is listened for
 * @throws what Node throws for a signal that cannot be listened for, such as SIGKILL; nothing is listened for
 */
export function closeOnSignal(
  holdfast: Pick<Holdfast, "close">,
  signals: readonly NodeJS.Signals[],
  options: CloseOnSignalOptions = {},
): () => void {
  const { onClosed, graceMs = DEFAULT_GRACE_MS } = checkKnown(options, ["graceMs", "onClosed"]);
  graceOf({ graceMs });
  // A name alone would be gone through letter by letter, and of one that there is not nothing would ever be heard.
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
    // A listener that nobody knows of would take away what the signals before it do by themselves.
    stop();
    throw error;
  }
  return stop;
}
