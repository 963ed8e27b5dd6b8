/** Parses durations as users type them, in the same format as the CLI. */

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses a duration such as `250ms`, `30s`, `5m`, `1h30m` or `2d`; a bare number means seconds. Undefined if invalid.
 */
export function durationMs(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined;
  let sumMs = 0;
  for (const [, amount, unit] of text.matchAll(/([\d.]+)(ms|s|m|h|d)/g))
    sumMs += Number(amount) * (UNIT_MS[unit ?? ""] ?? 0);
  return sumMs;
}
