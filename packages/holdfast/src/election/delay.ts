import { ClosedError } from "../core/errors.js";
import { onAbort } from "../core/options.js";
import type { Occupant, Session } from "../core/session.js";

/** Resolves after `delayMs`. @throws ClosedError, the signal's reason */
export function delay(
  session: Session,
  lockName: string,
  delayMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    // No request uses this claim. It only registers the delay with the session, so that closing ends the delay.
    const claim = session.newClaim(lockName, 1, 1, "");
    const end = (settle: () => void): void => {
      timer.cancel();
      removeAbortListener?.();
      session.dismiss(claim, pausing);
      settle();
    };
    const timer = session.runtime.startTimer(() => end(resolve), delayMs, true);
    const pausing: Occupant = {
      granted() {},
      recheck() {},
      revoked() {},
      reconnected() {},
      async close() {
        end(() => reject(new ClosedError(lockName)));
      },
    };
    session.admit(claim, pausing);
    const removeAbortListener = signal && onAbort(signal, () => end(() => reject(signal.reason)));
  });
}
