/** A small line chart of about thirty points as SVG, with a label for screen readers. */
import type { JSX } from "preact";
import { SAMPLE_SPAN_MS } from "../../api.js";
import { duration } from "../format.js";

const WIDTH = 84;
const HEIGHT = 22;
const INSET = 2;
/** The number of points that the server keeps. */
const SLOTS = 30;

/** The props of the chart. */
export interface SparkProps {
  /** One value for each sample interval, oldest first. */
  readonly points: readonly number[];
  /** What the values count, for the label: `waiters`. */
  readonly noun: string;
}

/** The points as a line from zero, with a dot at the last one; a dash if there are no values. */
export function Spark({ points, noun }: SparkProps): JSX.Element {
  if (points.length === 0) return <span class="none">–</span>;
  const highest = Math.max(...points);
  const last = points.at(-1) ?? 0;
  const span = duration(points.length * SAMPLE_SPAN_MS);
  const label = `${noun}, last ${span}: ${Math.min(...points)}–${highest}, now ${last}`;
  // The right edge is the present, and all rows have the same time scale.
  const step = (WIDTH - 2 * INSET) / (Math.max(SLOTS, points.length) - 1);
  const x = (index: number): number => WIDTH - INSET - (points.length - 1 - index) * step;
  const y = (value: number): number => HEIGHT - INSET - (highest === 0 ? 0 : (value / highest) * (HEIGHT - 2 * INSET));
  const line = points.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return (
    <svg
      class={highest === 0 ? "spark quiet" : "spark"}
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      <line class="spark-base" x1={INSET} x2={WIDTH - INSET} y1={HEIGHT - INSET} y2={HEIGHT - INSET} />
      {highest > 0 && (
        <polygon
          class="spark-area"
          points={`${x(0).toFixed(1)},${HEIGHT - INSET} ${line} ${x(points.length - 1).toFixed(1)},${HEIGHT - INSET}`}
        />
      )}
      <polyline class="spark-line" points={line} />
      <circle class="spark-dot" cx={x(points.length - 1)} cy={y(last)} r="2" />
    </svg>
  );
}
