/** Splits a line of samples at gaps: while there were no viewers, there is no data to draw. */

/** Shorter gaps are slow reads. */
const SHORTEST_GAP_MS = 15_000;
/** A gap is at least this many times the usual interval. */
const LONGER_THAN_USUAL = 4;

/** The samples, oldest first, split into runs without gaps. */
export function runsOf<Sample extends { readonly atMs: number }>(samples: readonly Sample[]): readonly Sample[][] {
  const steps = samples.slice(1).map(({ atMs }, i) => atMs - (samples[i]?.atMs ?? atMs));
  const usualMs = steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
  const gapMs = Math.max(SHORTEST_GAP_MS, usualMs * LONGER_THAN_USUAL);
  const runs: Sample[][] = [];
  for (const [i, sample] of samples.entries()) {
    const run = runs.at(-1);
    if (run === undefined || (steps[i - 1] ?? 0) > gapMs) runs.push([sample]);
    else run.push(sample);
  }
  return runs;
}
