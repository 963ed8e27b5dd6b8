import type { History } from "../../history/history.js";
import type { Operation } from "../../history/records.js";
import { Findings, showMs } from "../../sweeps/result.js";
import type { Found } from "./found.js";

/** Operations that consist of one request, whose reply says whether it succeeded. */
const ASKED: ReadonlySet<Operation["verb"]> = new Set(["acquire", "extend", "release"]);

/**
 * S5: every success is based on a reply.
 *
 * Each granted acquire, and each successful release and extension, has a confirming reply that reached its process
 * before the call returned. Decided by what was observed at the store, not by what the library reports; operations
 * that were not observed are not judged.
 */
export function answeredSuccesses({ operations }: History): { readonly found: Found[]; readonly checked: number } {
  // The property name is irrelevant here; only the collector's counting is used.
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
  if (answeredMs === null || answeredMs === undefined) return `${what}, but no reply said so`;
  return answeredMs > returnMs ? `${what} ${showMs(answeredMs - returnMs)} before its reply` : undefined;
}
