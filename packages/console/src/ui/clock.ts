/**
 * The server's time, in the browser.
 *
 * Leases end by the server's clock, and the visitor's may be wrong by hours. So every answer says what time it is there, and
 * from then on the browser's monotonic clock counts. An answer that was quick on its way is the better witness: of several, the
 * one that says the latest time counts, unless the server's clock itself was set back.
 */
import { useEffect, useState } from "preact/hooks";

/** Beyond this a clock was set back, or this computer slept; below, an answer merely was slow. */
const SLOW_ANSWER_MS = 5_000;

let baseAtMs = Date.now();
let basePerformanceMs = performance.now();

/** What time it is at the server, in ms since 1970. */
export function nowAtMs(): number {
  return baseAtMs + performance.now() - basePerformanceMs;
}

let isSet = false;

/** The server has just said what time it is. */
export function setServerTime(serverAtMs: number): void {
  const correctionMs = nowAtMs() - serverAtMs;
  if (isSet && correctionMs >= 0 && correctionMs < SLOW_ANSWER_MS) return;
  isSet = true;
  baseAtMs = serverAtMs;
  basePerformanceMs = performance.now();
}

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** The server's time, in a component that is drawn again every second while it is seen. */
export function useNow(): number {
  const [now, setNow] = useState(nowAtMs);
  useEffect(() => {
    const tick = (): void => setNow(nowAtMs());
    listeners.add(tick);
    timer ??= setInterval(() => {
      if (!document.hidden) for (const listener of [...listeners]) listener();
    }, 1_000);
    return () => {
      listeners.delete(tick);
      if (listeners.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return Math.max(now, nowAtMs());
}
