import type { HistoryRecord, Operation } from "../history/records.js";
import type { Extent, Scale } from "./layout.js";
import { element, label, tooltip, widthOf } from "./svg.js";

/** The bar and the text of an operation, before a row is assigned. */
export interface OperationBar {
  readonly operation: Operation;
  readonly bar: Extent;
  /** The extent of bar and text together. It must not overlap others in its row. */
  readonly extent: Extent;
  readonly textLeft: number;
  readonly text: string;
  /** Its position in the legal order that the checker found; empty if it has none. */
  readonly number: string;
}

/** The height of a bar. */
export const BAR_HEIGHT = 15;
const SMALLEST = 3;

/** Puts the text inside the bar, after it, or, at the right edge, before it. */
export function operationBar(operation: Operation, window: Scale, place: number | undefined): OperationBar {
  const left = window.x(operation.callMs);
  const right = Math.max(left + SMALLEST, window.x(operation.returnMs));
  const text = caption(operation);
  const number = place === undefined ? "" : `${place}. `;
  const width = widthOf(number + text) + 8;
  const isBehind = width > right - left;
  const isBefore = isBehind && right + width > window.right + 15 && left - width >= window.left;
  const textLeft = isBefore ? left - width + 4 : isBehind ? right + 4 : left + 4;
  const extent = { left: Math.min(left, textLeft), right: Math.max(right, textLeft + width - 8) };
  return { operation, bar: { left, right }, extent, textLeft, text, number };
}

function caption({ verb, outcome, refusal, token, args }: Operation): string {
  const given = [args.mode, args.permits, args.count].filter((value) => value !== undefined);
  const came = { ok: token === null ? "✓" : `✓ #${token}`, no: `✗ ${refusal ?? ""}`, info: "?" }[outcome];
  return [verb, ...given, came].join(" ").trimEnd();
}

/** Draws the bar in its row. */
export function drawOperation(drawn: OperationBar, top: number, red: ReadonlySet<HistoryRecord>): string {
  const { operation, bar, textLeft, text, number } = drawn;
  const { outcome, callMs, returnMs, owner, id, lockName, leaseId, validUntilMs } = operation;
  const facts = [
    `${text} (operation ${id})`,
    `"${lockName}", owner ${owner}, lease ${leaseId}`,
    `from ${callMs} to ${Number.isFinite(returnMs) ? `${returnMs} ms` : "no end"}`,
    ...(validUntilMs === null ? [] : [`valid until ${validUntilMs} ms`]),
  ];
  const style = red.has(operation) ? `${outcome} bad` : outcome;
  const size = { x: bar.left, y: top, width: bar.right - bar.left, height: BAR_HEIGHT, rx: 2 };
  const y = top + 11.5;
  return element(
    "g",
    {},
    tooltip(facts.join("\n")),
    element("rect", { ...size, class: style }),
    number === "" ? "" : label(number.trimEnd(), { x: textLeft, y, class: "order" }),
    label(text, { x: textLeft + widthOf(number), y }),
  );
}
