/** Formats numbers for findings. */

/** A decimal size with at most three digits, such as `100 MB`. */
export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  let left = count;
  while (left >= 1_000 && at < units.length - 1) {
    left /= 1_000;
    at += 1;
  }
  return `${left < 10 && at > 0 ? left.toFixed(1) : Math.round(left)} ${units[at]}`;
}

/** `1 key`, `3 keys`. */
export function counted(count: number, noun: string): string {
  return `${count} ${count === 1 ? noun : `${noun}s`}`;
}

/** A rounded duration: `0.21 ms`, `12 ms`, `3.4 s`. */
export function millis(ms: number): string {
  const size = Math.abs(ms);
  if (size >= 1_000) return `${(ms / 1_000).toFixed(size >= 10_000 ? 0 : 1)} s`;
  return `${size >= 10 ? Math.round(ms) : ms.toFixed(size >= 1 ? 1 : 2)} ms`;
}

/** Lists the first items, and how many more there are. */
export function few(items: readonly string[], most = 3): string {
  const rest = items.length - most;
  return rest > 0 ? `${items.slice(0, most).join(", ")} and ${rest} more` : items.join(", ");
}

/** Whether an error message from the server is about missing permissions of this user. */
export function isRefused(words: string): boolean {
  return /\bNOPERM\b|no permissions|can't run|unknown command|not (allowed|available|supported)|disabled/i.test(words);
}

/** The fix for facts that did not arrive in time. The console shows it too, so it names the whole command. */
export const MORE_TIME = "allow more time: run holdfast doctor --for 1m";
const LONGER_TIMEOUT = "allow more time: run holdfast doctor --command-timeout 30s";

/**
 * The fix for facts that could not be read.
 *
 * @param why    why not, from `NodeFacts.hidden`; undefined if they were not read because the role is unknown
 * @param grant  the fix if time is not the reason
 */
export function fixFor(why: string | undefined, grant: string): string {
  if (why?.startsWith("no reply within")) return MORE_TIME;
  return why?.includes("timed out") ? LONGER_TIMEOUT : grant;
}
