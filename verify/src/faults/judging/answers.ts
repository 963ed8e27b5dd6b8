import type { History } from "../../history/history.js";
import type { Operation } from "../../history/records.js";
import { Findings, showMs } from "../../sweeps/result.js";
import type { Found } from "./found.js";

/** What is asked for by one request, whose answer says whether it was done. */
const ASKED: ReadonlySet<Operation["verb"]> = new Set(["acquire", "extend", "release"]);

/**
 * S5: no success out of ambiguity.
 *
 * Each granted acquire, and each release and extension that succeeded, has an answer that says so, which came to its
 * process before the call returned. What was seen at the door of the store decides, not what the library says; an
 * operation that was not observed there is not judged.
 */
export function answeredSuccesses({ operations }: History): { readonly found: Found[]; readonly checked: number } {
  // The collector counts; its own property does not matter here.
  const findings = new Findings("S4");
  for (const operation of operations) {
    const { verb, outcome, answeredMs, lockName } = operation;
    if (!ASKED.has(verb) || outcome !== "ok" || answeredMs === undefined) continue;
    findings.decide(lockName, [operation], whatIsWrong(operation));
  }
  const { violations, figures } = findings.result();
  return {
    found: violations.map(({ message, name, records }) => ({ property: "S5", lockName: name, message, records })),
    checked: figures.checked ?? 0,
  };
}

function whatIsWrong({ verb, owner, lockName, answeredMs, returnMs }: Operation): string | undefined {
  const what = `${verb} of "${lockName}" by ${owner} succeeded`;
  if (answeredMs === null || answeredMs === undefined) return `${what}, and no answer said so`;
  return answeredMs > returnMs ? `${what} ${showMs(answeredMs - returnMs)} before the answer came` : undefined;
}
