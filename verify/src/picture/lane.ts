import type { Lease } from "../history/leases.js";
import type { Held, HistoryRecord, Lost, Operation } from "../history/records.js";
import { rowsOf, type Scale } from "./layout.js";
import { drawOperation, operationBar } from "./operation-bar.js";
import { element, fit, label, tooltip } from "./svg.js";

/** The records of one process. */
export interface Lane {
  readonly process: string;
  readonly operations: readonly Operation[];
  readonly leases: readonly Lease[];
  readonly lost: readonly Lost[];
  readonly held: readonly Held[];
}

/** Where and how to draw a lane. */
export interface Place {
  readonly window: Scale;
  readonly top: number;
  /** Records to show in red. */
  readonly red: ReadonlySet<HistoryRecord>;
  /** The position of each operation in the legal order that the checker found, by id. */
  readonly places: ReadonlyMap<number, number>;
  readonly isStriped: boolean;
  readonly width: number;
}

const ROW = 20;
const LEASE_ROW = 18;
const PADDING = 7;

/** A lane as two layers. The time grid and the faults are drawn between them. */
export interface DrawnLane {
  readonly ground: string;
  readonly svg: string;
  readonly height: number;
}

/** Draws a lane. */
export function drawLane(lane: Lane, place: Place): DrawnLane {
  const { window, top, red, places, isStriped, width } = place;
  const bars = lane.operations.map((operation) => operationBar(operation, window, places.get(operation.id)));
  const rows = rowsOf(
    bars.map(({ extent }) => extent),
    5,
  );
  const leases = lane.leases.flatMap((lease) =>
    lease.claims
      .filter(({ startMs, endMs }) => window.shows(startMs, endMs))
      .map(({ startMs, endMs, mode }) => ({ lease, mode, left: window.x(startMs), right: window.x(endMs) })),
  );
  const leaseRows = rowsOf(leases, 0);
  const rowCount = (list: readonly number[]): number => list.reduce((most, row) => Math.max(most, row + 1), 0);
  const leaseTop = top + PADDING + rowCount(rows) * ROW;
  const height = PADDING * 2 + rowCount(rows) * ROW + rowCount(leaseRows) * LEASE_ROW;
  const rowOf = new Map(leases.map(({ lease }, index) => [lease.acquire.id, leaseRows[index] ?? 0]));
  const marks = [...lane.held, ...lane.lost].filter(({ atMs }) => window.shows(atMs, atMs));

  const ground = isStriped ? element("rect", { x: 0, y: top, width, height, class: "stripe" }) : "";
  const svg = [
    element("line", { x1: 0, x2: width, y1: top + height, y2: top + height, class: "line" }),
    label(fit(lane.process, 105), { x: 20, y: top + PADDING + 12, class: "lane" }),
    ...bars.map((drawn, index) => drawOperation(drawn, top + PADDING + (rows[index] ?? 0) * ROW, red)),
    ...leases.map((lease, index) => drawLease(lease, leaseTop + (leaseRows[index] ?? 0) * LEASE_ROW, red)),
    ...marks.map((mark) =>
      drawMark(mark, window.x(mark.atMs), leaseTop + (rowOf.get(mark.leaseId) ?? 0) * LEASE_ROW, red),
    ),
  ].join("");
  return { ground, svg, height };
}

interface LeaseBar {
  readonly lease: Lease;
  readonly mode: string | undefined;
  readonly left: number;
  readonly right: number;
}

function drawLease(
  { lease: { acquire, validUntilMs }, mode, left, right }: LeaseBar,
  top: number,
  red: ReadonlySet<HistoryRecord>,
): string {
  const width = Math.max(2, right - left);
  const text = fit(`${mode ?? "holds"}${acquire.token === null ? "" : ` #${acquire.token}`}`, width - 6);
  return element(
    "g",
    {},
    tooltip(`lease ${acquire.id} of ${acquire.owner}, valid until ${validUntilMs} ms`),
    element("rect", { x: left, y: top, width, height: 13, class: red.has(acquire) ? "lease bad" : "lease" }),
    text.length > 1 ? label(text, { x: left + 4, y: top + 10, class: "white" }) : "",
  );
}

function drawMark(mark: Held | Lost, x: number, top: number, red: ReadonlySet<HistoryRecord>): string {
  const bad = red.has(mark) ? " bad" : "";
  if (mark.type === "lost") {
    const cross = `M${x - 4} ${top + 2}l8 8m0 -8l-8 8`;
    return element(
      "g",
      {},
      tooltip(`lost at ${mark.atMs} ms`),
      element("path", { d: cross, class: `lost${bad}`, fill: "none" }),
    );
  }
  const said = mark.isHeld ? "held" : "over";
  return element(
    "g",
    {},
    tooltip(`${said} at ${mark.atMs} ms`),
    element("circle", { cx: x, cy: top + 13, r: 3.5, class: said + bad }),
  );
}
