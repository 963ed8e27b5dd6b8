import { onAbort } from "./abort.js";
import type { Engine, Occupant } from "./engine.js";
import { ClosedError } from "./errors.js";

/** Resolves after `delayMs`. @throws ClosedError, the signal's reason  which end it at once */
export function delay(
  engine: Engine,
  lockName: string,
  delayMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    // It asks for nothing under this id: the id makes it known to the engine, which tells it of the end.
    const claim = engine.newClaim(lockName, 1, 1, "");
    const end = (settle: () => void): void => {
      timer.cancel();
      stopListening?.();
      engine.dismiss(claim, pausing);
      settle();
    };
    const timer = engine.runtime.startTimer(() => end(resolve), delayMs, true);
    const pausing: Occupant = {
      granted() {},
      poked() {},
      revoked() {},
      reconnected() {},
      async close() {
        end(() => reject(new ClosedError(lockName)));
      },
    };
    engine.admit(claim, pausing);
    const stopListening = signal && onAbort(signal, () => end(() => reject(signal.reason)));
  });
}
