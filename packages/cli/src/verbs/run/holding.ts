/** `--hold` and `--until-eof`: holds a lease without a command until it is no longer needed. */

import type { SignalDesk } from "../../child/signals.js";
import { Stopwatch } from "../../child/stopwatch.js";
import type { WatchedLease } from "../../child/supervision.js";

/** Maximum time between two checks. It is short because the clock can be changed and the host can sleep. */
const CHECK_MAX_MS = 250;

/**
 * Waits for a signal that ends the hold, for the end of `input`, for the loss of the lease, or for the end of
 * `maxHoldMs`.
 */
export function holdWithoutCommand(
  lease: WatchedLease,
  maxHoldMs: number | undefined,
  desk: SignalDesk,
  input: Promise<void> | undefined,
): Promise<NodeJS.Signals | "eof" | "lost" | "max-hold"> {
  return new Promise((resolve) => {
    const held = new Stopwatch();
    let timer: NodeJS.Timeout | undefined;
    const end = (how: NodeJS.Signals | "eof" | "lost" | "max-hold"): void => {
      clearTimeout(timer);
      lease.signal.removeEventListener("abort", check);
      resolve(how);
    };
    const check = (): void => {
      clearTimeout(timer);
      if (lease.signal.aborted || lease.validForMs() <= 0) end("lost");
      else if (maxHoldMs !== undefined && held.elapsedMs() >= maxHoldMs) end("max-hold");
      else timer = setTimeout(check, CHECK_MAX_MS);
    };
    desk.take((signal) => {
      if (!signal.startsWith("SIGUSR")) end(signal);
    });
    lease.signal.addEventListener("abort", check);
    void input?.then(() => end("eof"));
    check();
  });
}
