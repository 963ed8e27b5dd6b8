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
      signal?.removeEventListener("abort", onAbort);
      engine.dismiss(claim, pausing);
      settle();
    };
    const onAbort = (): void => end(() => reject(signal?.reason));
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
    signal?.addEventListener("abort", onAbort);
  });
}
