/** The verdict on a liveness cell: its measurements compared with their targets, and safety in the same history. */
import { historyOf } from "../../history/index.js";
import type { HistoryRecord } from "../../history/records.js";
import {
  leaseExclusion,
  permitsWithinLimit,
  risingTokens,
  type SweepResult,
  uniqueTokens,
} from "../../sweeps/index.js";
import type { Cell } from "../cell.js";
import { breachesOf, foundBy } from "../judging/found.js";
import { asSaid } from "../judging/said-held.js";
import type { Judgement } from "../parts.js";
import { isHoldfast } from "./build.js";
import { PERMITS } from "./connection.js";
import { judgeMeasures, type Measure, TARGET_MISSED, textOf } from "./measure.js";

/** Judges a run. Each measurement is also a note, so that the report shows those that meet their targets. */
export function judgeLiveness(
  cell: Cell,
  subject: string,
  records: readonly HistoryRecord[],
  measures: readonly Measure[],
): Judgement {
  const history = historyOf(records);
  const names = new Set(history.operations.map(({ lockName }) => lockName));
  const exclusion = (given: typeof history): SweepResult =>
    cell.letter === "s"
      ? permitsWithinLimit(given, new Map(Array.from(names, (name) => [name, PERMITS])))
      : leaseExclusion(given);
  const sweeps = [
    isHoldfast(subject) ? exclusion(history) : asSaid(history, exclusion),
    uniqueTokens(history),
    risingTokens(history),
  ];
  const targets = judgeMeasures(cell.row, measures);
  const checked: Record<string, number> = { [TARGET_MISSED]: targets.checked };
  for (const { property, figures } of sweeps) checked[property] = (checked[property] ?? 0) + (figures.checked ?? 0);
  const found = breachesOf(sweeps.flatMap(foundBy), history, cell.id);
  return {
    breaches: [...found.breaches, ...targets.breaches],
    breached: {
      ...found.breached,
      ...(targets.breaches.length > 0 ? { [TARGET_MISSED]: targets.breaches.length } : {}),
    },
    checked,
    unknown: 0,
    notes: [...measures.map(textOf), ...found.notes],
  };
}
