/** Formats numbers, times and sizes for all pages. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A duration: `850ms`, `24s`, `3m12s`, `1h04m`, `2d03h`. A negative duration counts as 0. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)}s`;
  const [large, big, small, little] =
    ms < HOUR
      ? ([MINUTE, "m", SECOND, "s"] as const)
      : ms < DAY
        ? ([HOUR, "h", MINUTE, "m"] as const)
        : ([DAY, "d", HOUR, "h"] as const);
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)}${big}${String(rest).padStart(2, "0")}${little}`;
}

/** Like `duration`, in whole seconds: for values that change every second, where milliseconds would only flicker. */
export function seconds(ms: number): string {
  return ms < SECOND ? "0s" : duration(ms);
}

/** An instant in the visitor's time zone: `03:00:02`, with the date unless it is today. */
export function clockTime(atMs: number, nowAtMs: number): string {
  const date = new Date(atMs);
  const time = date.toLocaleTimeString("en-GB");
  const isToday = date.toDateString() === new Date(nowAtMs).toDateString();
  return isToday ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}

/** An instant as ISO 8601 in UTC, for tooltips and files; empty if invalid. */
export function iso(atMs: number): string {
  const date = new Date(atMs);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

/** A count with its noun: `1 waiter`, `3 waiters`. */
export function count(n: number, noun: string, plural: string = `${noun}s`): string {
  return `${whole(n)} ${n === 1 ? noun : plural}`;
}

/** A whole number with commas between thousands: `10,000`. */
export function whole(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A number of bytes: `512 B`, `1.4 MB`. */
export function bytes(n: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = n;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
