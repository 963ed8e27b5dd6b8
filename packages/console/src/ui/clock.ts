/**
 * The server's time, in the browser.
 *
 * Leases end on the server's clock, and the visitor's clock may be hours off. Every response contains the server's
 * time, and the browser's monotonic clock counts on from there. Responses with less delay are more accurate, so the one
 * that gives the latest time wins, unless the server's clock itself was set back.
 */
import { useEffect, useState } from "preact/hooks";

/**
 * A larger difference means that a clock was set back or this computer slept. A smaller one means that a response was
 * slow.
 */
const SLOW_ANSWER_MS = 5_000;

let baseAtMs = Date.now();
let basePerformanceMs = performance.now();

/** The current server time, in ms since 1970. */
export function nowAtMs(): number {
  return baseAtMs + performance.now() - basePerformanceMs;
}

let isSet = false;

/** Updates the clock with the server's time from a response. */
export function setServerTime(serverAtMs: number): void {
  const correctionMs = nowAtMs() - serverAtMs;
  if (isSet && correctionMs >= 0 && correctionMs < SLOW_ANSWER_MS) return;
  isSet = true;
  baseAtMs = serverAtMs;
  basePerformanceMs = performance.now();
}

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** The server's time, for a component that rerenders every second while visible. */
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
