/** Checks of intervals during which permits were in use, on a clock that all processes share. */

/** A period during which one caller used permits. */
export interface Interval {
  readonly beginMs: number;
  readonly endMs: number;
  readonly permits: number;
  readonly slots: readonly number[];
}

/** The maximum number of permits in use at any time. An interval that ends where another begins does not overlap it. */
export function mostAtOnce(intervals: readonly Interval[]): number {
  const changes = intervals.flatMap(({ beginMs, endMs, permits }) => [
    { atMs: beginMs, by: permits },
    { atMs: endMs, by: -permits },
  ]);
  changes.sort((a, b) => a.atMs - b.atMs || a.by - b.by);
  let used = 0;
  return changes.reduce((most, { by }) => {
    used += by;
    return Math.max(most, used);
  }, 0);
}

/** Slot numbers that two intervals used at the same time, one entry for each pair. */
export function overlaps(intervals: readonly Interval[]): string[] {
  const endOf = new Map<number, number>();
  const found: string[] = [];
  for (const { beginMs, endMs, slots } of intervals.toSorted((a, b) => a.beginMs - b.beginMs)) {
    for (const slot of slots) {
      if ((endOf.get(slot) ?? 0) > beginMs) found.push(`slot ${slot} at ${beginMs}`);
      endOf.set(slot, Math.max(endMs, endOf.get(slot) ?? 0));
    }
  }
  return found;
}
