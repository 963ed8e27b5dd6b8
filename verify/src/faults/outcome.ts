/** Derives the outcome of a run from its findings. */
import type { Fault, HistoryRecord } from "../history/records.js";
import { type Ground, groundOf } from "../sweeps/ground.js";
import type { Cell, Letter } from "./cell.js";
import type { Judgement } from "./parts.js";
import type { Breach, CellOutcome } from "./verdict.js";

/** The findings of one run of a cell. */
export interface Seen {
  readonly cell: Cell;
  readonly subject: string;
  readonly records: readonly HistoryRecord[];
  readonly judgement: Judgement;
  /** Problems of the run itself: a fault that could not be caused, a process that did not reply. */
  readonly troubles: readonly string[];
}

/** The outcome, with its reasons. */
export interface Decided {
  readonly outcome: CellOutcome;
  readonly notes: readonly string[];
}

const EXCLUSION: Readonly<Record<Letter, readonly string[]>> = {
  m: ["S2"],
  r: ["S2"],
  f: ["S2"],
  k: ["S2"],
  t: ["S2"],
  a: ["S2"],
  w: ["X2"],
  s: ["X1"],
  l: ["S1"],
  e: ["S2"],
  b: ["S1"],
  c: ["S2"],
};

/** The properties of which at least one must have been decided; otherwise the history says nothing about the cell. */
export function decisive({ judged, letter }: Cell): readonly string[] {
  if (judged === "tokens") return ["F1", "F2"];
  return judged === "effects" ? ["E1"] : EXCLUSION[letter];
}

/** Whether a breach is what a control must show: a violation of exactly what is not guaranteed. */
export function isWanted({ judged }: Cell, { property }: Breach): boolean {
  if (judged === "tokens") return property === "F1" || property === "F2";
  if (judged === "effects") return property === "E1" || property === "F5";
  return /^(?:S1|S2|X1|X2)$/.test(property);
}

/** Faults that also delete the token counters, on which the guarantees about tokens depend. */
const TAKES_COUNTERS = /^J3[67]$/;

/** The grounds that the fault of a cell takes away. Where tokens are judged, leases may overlap. */
export function groundsLostIn({ expectation, judged, row }: Cell): readonly Ground[] {
  const isKept = expectation === "kept" || expectation === "refused";
  if (judged === "tokens") return isKept ? ["exclusion"] : ["exclusion", "tokens", "effects"];
  // A promotion may lose leases, but tokens still keep effects apart.
  if (isKept) return judged === "effects" && row.startsWith("J31") ? ["exclusion"] : [];
  if (judged === "effects") return ["effects"];
  return TAKES_COUNTERS.test(row) ? ["exclusion", "tokens", "effects"] : ["exclusion"];
}

/** Whether a property is guaranteed in such a cell. For a peer, only what the cell expects to be kept. */
export function isPromised(cell: Cell, { property }: Pick<Breach, "property">, subject: string): boolean {
  if (subject !== "holdfast" && cell.expectation !== "kept") return false;
  const ground = groundOf(property);
  return ground === undefined || !groundsLostIn(cell).includes(ground);
}

/** The outcome of a run. A run that shows nothing is `void`, never `ok`. */
export function decide({ cell, subject, records, judgement, troubles }: Seen): Decided {
  const faults = records.filter((record) => record.type === "fault");
  const struck = faults.filter(({ proof }) => proof !== null);
  const missed = faults.length - struck.length;
  const notes = missed > 0 ? [`${missed} of ${faults.length} faults did not strike`] : [];
  const isBreached = judgement.breaches.some((breach) => isPromised(cell, breach, subject));
  // A violated guarantee has priority, whatever else happened in the run.
  if (isBreached) return { outcome: "violation", notes: [...notes, ...troubles] };
  if (troubles.length > 0) return { outcome: "void", notes: [...notes, ...troubles] };
  if (struck.length === 0) return { outcome: "void", notes: [...notes, "no fault is proved to have struck"] };
  const { outcome, why } = byExpectation(cell, records, judgement, struck);
  // An unknown result counts as a failure everywhere, but does not excuse other errors.
  if (outcome === "ok" && judgement.unknown > 0)
    return { outcome: "unknown", notes: [...notes, `${judgement.unknown} names were not decided`] };
  return { outcome, notes: why === undefined ? notes : [...notes, why] };
}

function byExpectation(
  cell: Cell,
  records: readonly HistoryRecord[],
  { breaches, checked }: Judgement,
  struck: readonly Fault[],
): { readonly outcome: CellOutcome; readonly why?: string } {
  if (cell.expectation === "refused") return refusal(records, struck);
  if (cell.expectation === "broken" && breaches.some((breach) => isWanted(cell, breach))) return { outcome: "ok" };
  const wanted = decisive(cell);
  const cases = wanted.reduce((sum, property) => sum + (checked[property] ?? 0), 0);
  if (cases === 0) return { outcome: "void", why: `nothing in the history decides ${wanted.join(" or ")}` };
  if (cell.expectation === "broken") return { outcome: "toothless", why: `no violation of ${wanted.join(" or ")}` };
  return { outcome: "ok" };
}

/** The proof of such a fault is the library's refusal; in addition, nothing may have been granted. */
function refusal(records: readonly HistoryRecord[], struck: readonly Fault[]): { outcome: CellOutcome; why?: string } {
  const granted = records.filter((record) => record.type === "operation" && isGrant(record)).length;
  if (granted > 0) return { outcome: "violation", why: `${granted} grants on a server that has to be refused` };
  return { outcome: "ok", why: struck[0]?.proof ?? "" };
}

function isGrant(record: HistoryRecord): boolean {
  return record.type === "operation" && record.verb === "acquire" && record.outcome === "ok";
}
