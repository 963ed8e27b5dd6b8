/** Small charts, drawn by hand: a line of some thirty points, and the same in words for who does not see it. */
import type { JSX } from "preact";

const WIDTH = 84;
const HEIGHT = 22;
const INSET = 2;
/** As many points as the server keeps. */
const SLOTS = 30;

/** What to draw. */
export interface SparkProps {
  /** Oldest first; a number each, at even distances. */
  readonly points: readonly number[];
  /** What they are, for the text: `waiters`. */
  readonly noun: string;
  /** How far back they go, for the text: `5 min`. */
  readonly span: string;
}

/** Points as a line from zero; the last one as a dot. A lock that nobody ever waits for shows a quiet base line. */
export function Spark({ points, noun, span }: SparkProps): JSX.Element {
  if (points.length === 0) return <span class="none">–</span>;
  const highest = Math.max(...points);
  const last = points.at(-1) ?? 0;
  const label = `${noun}, last ${span}: ${Math.min(...points)}–${highest}, now ${last}`;
  // The right edge is now, and every row has the same scale of time.
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
