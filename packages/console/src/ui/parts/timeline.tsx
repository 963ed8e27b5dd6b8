/** A timeline of holds: one bar each, in several lanes for concurrent holds. The table below it has the same data. */
import type { JSX } from "preact";
import type { HistoryOutcome, HistoryRow } from "../../api.js";
import { useNow } from "../clock.js";
import { clockTime, count, duration } from "../format.js";
import { clientIdIn, whoText } from "../who.js";

const LANE_PX = 18;
const BAR_PX = 12;
const WIDTH = 1_000;
const LANES_AT_MOST = 8;
/** Outcomes drawn as trouble. All others except `held` are drawn as released. */
const TROUBLE: ReadonlySet<HistoryOutcome> = new Set<HistoryOutcome>(["lost", "expired", "forced"]);

interface Hold {
  readonly fromAtMs: number;
  readonly toAtMs: number;
  readonly row: HistoryRow;
}

/** The chart; null if no hold is recorded. */
export function Timeline({ rows }: { readonly rows: readonly HistoryRow[] }): JSX.Element | null {
  const now = useNow();
  const holds = holdsOf(rows, now);
  const [first] = holds;
  if (first === undefined) return null;
  const beginAtMs = first.fromAtMs;
  const spanMs = Math.max(1_000, now - beginAtMs);
  const lanes = lanesOf(holds);
  const height = lanes.length * LANE_PX + 4;
  const x = (atMs: number): number => ((atMs - beginAtMs) / spanMs) * WIDTH;
  const troubled = holds.filter(({ row }) => TROUBLE.has(row.outcome)).length;
  const label = `${count(holds.length, "hold")} in the last ${duration(spanMs)}, ${troubled} of them lost, expired or forced`;
  return (
    <figure class="timeline">
      <svg viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" height={height} role="img" aria-label={label}>
        {lanes.flatMap((lane, index) =>
          lane.map(({ fromAtMs, toAtMs, row }) => (
            <rect
              key={row.id}
              class={barClass(row.outcome)}
              x={x(fromAtMs).toFixed(2)}
              width={Math.max(2, x(toAtMs) - x(fromAtMs)).toFixed(2)}
              y={index * LANE_PX + (LANE_PX - BAR_PX) / 2}
              height={BAR_PX}
            >
              <title>
                {`${whoText({ ...row, clientId: clientIdIn(row.owner) })}: ${row.outcome}, ${duration(toAtMs - fromAtMs)}`}
              </title>
            </rect>
          )),
        )}
      </svg>
      <figcaption>
        <span>{clockTime(beginAtMs, now)}</span>
        <span class="legend">
          <span class="key bar-done" /> released
          <span class="key bar-held" /> held now
          <span class="key bar-trouble" /> lost, expired, forced
        </span>
        <span>now</span>
      </figcaption>
    </figure>
  );
}

function barClass(outcome: HistoryOutcome): string {
  if (TROUBLE.has(outcome)) return "bar-trouble";
  return outcome === "held" ? "bar-held" : "bar-done";
}

function holdsOf(rows: readonly HistoryRow[], nowAtMs: number): Hold[] {
  return rows
    .flatMap((row) => {
      const { sinceAtMs, heldMs, outcome } = row;
      if (sinceAtMs === null || outcome === "skipped" || outcome === "paused" || outcome === "resumed") return [];
      const toAtMs = outcome === "held" ? nowAtMs : sinceAtMs + (heldMs ?? Math.max(0, row.writtenAtMs - sinceAtMs));
      return [{ fromAtMs: sinceAtMs, toAtMs, row }];
    })
    .sort((a, b) => a.fromAtMs - b.fromAtMs);
}

/** Puts each hold into the first lane that is free when it begins. */
function lanesOf(holds: readonly Hold[]): Hold[][] {
  const lanes: Hold[][] = [];
  for (const hold of holds) {
    const free = lanes.find((lane) => (lane.at(-1)?.toAtMs ?? 0) <= hold.fromAtMs);
    if (free !== undefined) free.push(hold);
    else if (lanes.length < LANES_AT_MOST) lanes.push([hold]);
  }
  return lanes;
}
