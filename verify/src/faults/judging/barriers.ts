/** S1 of barriers in a history: each generation passes for all of its parties at one instant, or for none. */
import { groupBy, type History } from "../../history/history.js";
import type { Operation } from "../../history/records.js";
import { type Arrival, judgeBarrier } from "../../simulation/kinds/barrier-model.js";
import { killsOf, lastInstant } from "../../sweeps/faults.js";
import { showMs } from "../../sweeps/result.js";
import { PARTIES } from "../programs/messages.js";
import type { Found } from "./found.js";

/** Findings and decided cases, by property. */
export interface Barriers {
  readonly found: readonly Found[];
  readonly checked: Readonly<Record<"S1" | "L4", number>>;
}

/** @param lateMs  by how much a wait may end late, because of its last requests or a busy machine */
export function judgeBarriers(history: History, lateMs: number): Barriers {
  const found: Found[] = [];
  const checked = { S1: 0, L4: 0 };
  const arrivals = history.operations.filter(({ kind, verb }) => kind === "barrier" && verb === "arrive");
  for (const [lockName, all] of groupBy(arrivals, (operation) => operation.lockName)) {
    // A call that was refused before anything was sent has not arrived.
    const sent = all.filter(({ outcome, result }) => outcome !== "no" || result !== undefined);
    const { wrong, passed } = judgeBarrier(sent.map(arrivalOf), PARTIES);
    checked.S1 += passed;
    for (const text of wrong) found.push({ property: "S1", lockName, message: `"${lockName}": ${text}`, records: all });
  }
  const killed = new Set(killsOf(history).map(({ process }) => process));
  const endMs = lastInstant(history);
  for (const arrival of arrivals) {
    const dueMs = arrival.callMs + (arrival.args.waitMs ?? Number.POSITIVE_INFINITY) + lateMs;
    if (killed.has(arrival.process) || (arrival.returnMs > endMs && endMs <= dueMs)) continue;
    checked.L4 += 1;
    if (Math.min(arrival.returnMs, endMs) <= dueMs) continue;
    const { lockName, owner } = arrival;
    const message = `arrival of ${owner} at "${lockName}" had not ended by ${showMs(dueMs)}`;
    found.push({ property: "L4", lockName, message, records: [arrival] });
  }
  return { found, checked };
}

function arrivalOf({ callMs, returnMs, outcome, result, index }: Operation): Arrival {
  if (result === undefined || outcome === "info") return { callMs, returnMs, end: { what: "unknown" } };
  if (outcome === "no") return { callMs, returnMs, end: { what: "broke", generation: result } };
  return { callMs, returnMs, end: { what: "passed", generation: result, index: index ?? -1 } };
}
