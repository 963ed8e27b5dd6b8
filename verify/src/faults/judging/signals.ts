import { groupBy, type History } from "../../history/history.js";
import type { Found } from "./found.js";

/**
 * L3 of conditions: no signal is lost. A signal that says it reached somebody has let one of the waits go on, if all who
 * wait have the patience for it; a wait of which nobody knows the end may be that one.
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
    const message = `"${lockName}": signals reached ${reached} who waited, and only ${wentOn} can have gone on`;
    found.push({ property: "L3", lockName, message, records: all });
  }
  return { found, checked };
}
