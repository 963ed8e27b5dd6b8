/** Computes the positions of instants, and keeps the items of one lane apart. */

/** A window of time, drawn between two edges. */
export interface Scale {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly left: number;
  readonly right: number;
  /** The position of the instant. Instants outside the window lie at its edge. */
  x(atMs: number): number;
  /** Whether any of the span is in the window. */
  shows(beganMs: number, endedMs: number): boolean;
}

/** A window of time from edge to edge. */
export function scale(fromMs: number, untilMs: number, left: number, right: number): Scale {
  const lengthMs = Math.max(untilMs - fromMs, 1e-6);
  return {
    fromMs,
    untilMs,
    left,
    right,
    x: (atMs) => left + Math.min(1, Math.max(0, (atMs - fromMs) / lengthMs)) * (right - left),
    shows: (beganMs, endedMs) => beganMs <= untilMs && endedMs >= fromMs,
  };
}

/** Round instants in the window, about one in 100 px. */
export function ticks({ fromMs, untilMs, left, right }: Scale): number[] {
  const roughMs = (untilMs - fromMs) / Math.max(1, Math.floor((right - left) / 100));
  if (roughMs <= 0) return [fromMs];
  const power = 10 ** Math.floor(Math.log10(roughMs));
  const stepMs = ([1, 2, 5].find((factor) => factor * power >= roughMs) ?? 10) * power;
  const first = Math.ceil(fromMs / stepMs);
  const count = Math.max(0, Math.floor(untilMs / stepMs) - first + 1);
  // A multiple of the step, not a sum of steps, so that rounding errors do not add up.
  return Array.from({ length: count }, (_, index) => Number(((first + index) * stepMs).toPrecision(12)));
}

/** The start and end of a drawn bar, with its text. */
export interface Extent {
  readonly left: number;
  readonly right: number;
}

/** Assigns each extent, in order, to the first row that has room. */
export function rowsOf(extents: readonly Extent[], gap: number): number[] {
  const ends: number[] = [];
  return extents.map(({ left, right }) => {
    const free = ends.findIndex((end) => end + gap <= left);
    const row = free < 0 ? ends.length : free;
    ends[row] = right;
    return row;
  });
}
