import type { History } from "../../history/history.js";
import type { Operation } from "../../history/records.js";
import { Findings, showMs } from "../../sweeps/result.js";
import type { Found } from "./found.js";

/**
 * S5: no success out of ambiguity.
 *
 * Each granted acquire has an answer that says so, which came to its process before it returned, and returned before
 * its lease was over. What was seen at the door of the store decides, not what the library says; an operation that
 * nobody watched there is not judged.
 */
export function answeredSuccesses({ operations }: History): { readonly found: Found[]; readonly checked: number } {
  // The collector counts; its own property does not matter here.
  const findings = new Findings("S4");
  for (const operation of operations) {
    const { verb, outcome, answeredMs, lockName } = operation;
    if (verb !== "acquire" || outcome !== "ok" || answeredMs === undefined) continue;
    findings.decide(lockName, [operation], whatIsWrong(operation));
  }
  const { violations, figures } = findings.result();
  return {
    found: violations.map(({ message, name, records }) => ({ property: "S5", lockName: name, message, records })),
    checked: figures.checked ?? 0,
  };
}

function whatIsWrong({ owner, lockName, answeredMs, returnMs }: Operation): string | undefined {
  const what = `acquire of "${lockName}" by ${owner} succeeded`;
  if (answeredMs === null || answeredMs === undefined) return `${what}, and no answer said so`;
  return answeredMs > returnMs ? `${what} ${showMs(answeredMs - returnMs)} before the answer came` : undefined;
}
