/** A chart of recent round trips to Redis as SVG: a line, its maximum, and the same information as text. */
import type { JSX } from "preact";
import type { LatencySample } from "../../api.js";
import { clockTime } from "../format.js";
import { runsOf } from "../runs.js";

const WIDTH = 1_000;
const HEIGHT = 120;

/** The chart. */
export function LatencyChart({ samples }: { readonly samples: readonly LatencySample[] }): JSX.Element {
  const first = samples[0];
  const last = samples.at(-1);
  if (first === undefined || last === undefined || samples.length < 2)
    return <p class="note">The chart starts at the second reading.</p>;
  const sortedMs = samples.map(({ ms }) => ms).sort((a, b) => a - b);
  const at = (share: number): number =>
    sortedMs[Math.min(sortedMs.length - 1, Math.floor(share * sortedMs.length))] ?? 0;
  const highestMs = sortedMs.at(-1) ?? 0;
  const topMs = niceTop(highestMs);
  const spanMs = Math.max(1, last.atMs - first.atMs);
  const pointOf = ({ atMs, ms }: LatencySample): string => {
    const x = ((atMs - first.atMs) / spanMs) * WIDTH;
    const y = HEIGHT - (ms / topMs) * HEIGHT;
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  };
  const facts = `now ${millis(last.ms)}, p50 ${millis(at(0.5))}, p99 ${millis(at(0.99))}, highest ${millis(highestMs)}`;
  return (
    <figure class="chart">
      <div class="chart-frame">
        <span class="chart-top">{millis(topMs)}</span>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          height={HEIGHT}
          role="img"
          aria-label={`Round trip: ${facts}`}
        >
          <line class="grid" x1="0" x2={WIDTH} y1="0" y2="0" />
          <line class="grid" x1="0" x2={WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
          <line class="grid" x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
          {runsOf(samples).map((run) => (
            <polyline key={run[0]?.atMs} class="spark-line" points={run.map(pointOf).join(" ")} />
          ))}
        </svg>
      </div>
      <figcaption>
        <span>{clockTime(first.atMs, last.atMs)}</span>
        <span class="facts-line">{facts}</span>
        <span>now</span>
      </figcaption>
    </figure>
  );
}

function millis(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

/** Rounds up to 1, 2 or 5 times a power of ten, so that the scale rarely changes. */
function niceTop(ms: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(ms, 0.1)));
  return ([1, 2, 5].find((step) => step * power >= ms) ?? 10) * power;
}
