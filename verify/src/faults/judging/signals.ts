import { groupBy, type History } from "../../history/history.js";
import type { Found } from "./found.js";

/**
 * L3 of conditions: no signal is lost. A signal that reports a reached waiter has let one wait continue, if all
 * waiters have a long enough limit. A wait with an unknown end may be that one.
 */
export function lostSignals({ operations }: History): { readonly found: readonly Found[]; readonly checked: number } {
  const found: Found[] = [];
  let checked = 0;
  const own = operations.filter(({ kind }) => kind === "condition");
  for (const [lockName, all] of groupBy(own, (operation) => operation.lockName)) {
    const signals = all.filter(({ verb, outcome }) => verb === "signal" && outcome === "ok");
    const reached = signals.reduce((sum, { result = 0 }) => sum + result, 0);
    const wentOn = all.filter(({ verb, outcome }) => verb === "wait" && outcome !== "no").length;
    checked += reached;
    if (reached <= wentOn) continue;
    const message = `"${lockName}": signals reached ${reached} waiters, but only ${wentOn} can have continued`;
    found.push({ property: "L3", lockName, message, records: all });
  }
  return { found, checked };
}
