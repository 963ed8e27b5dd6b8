import type { Kind, Mode, Operation, Outcome, Refusal, Verb } from "../src/history/records.js";

const REFUSALS: ReadonlySet<string> = new Set(["busy", "gave-up", "not-owner", "not-sent"]);

/**
 * Parses operations from lines such as `A acquire 0-2 ok lease=100 token=7`: owner, verb, call and return, outcome and
 * arguments. `0-` never returns. A line's number is its id. Verbs other than acquire refer to the owner's last acquire.
 */
export function operations(lines: readonly string[], kind: Kind = "mutex", lockName = "orders"): Operation[] {
  const leases = new Map<string, number>();
  return lines.map((line, id) => {
    const [owner = "", verb = "", span = "", outcome = "", ...rest] = line.split(" ");
    const [callMs, returnMs] = span.split("-");
    const values = new Map(rest.map((part) => part.split("=") as [string, string | undefined]));
    const number = (name: string): number | undefined => {
      const text = values.get(name);
      return text === undefined ? undefined : Number(text);
    };
    if (verb === "acquire") leases.set(owner, id);
    const refusal = rest.find((part) => REFUSALS.has(part)) as Refusal | undefined;
    return {
      type: "operation",
      id,
      process: values.get("process") ?? owner,
      incarnation: 0,
      lockName,
      kind,
      verb: verb as Verb,
      args: present({
        leaseMs: number("lease") ?? 1000,
        waitMs: number("wait"),
        abortedAtMs: number("aborted"),
        permits: number("permits"),
        mode: values.get("mode") as Mode | undefined,
        count: number("count"),
        callerId: values.get("caller"),
      }),
      callMs: Number(callMs),
      returnMs: returnMs === "" ? Number.POSITIVE_INFINITY : Number(returnMs),
      outcome: outcome as Outcome,
      owner,
      leaseId: number("of") ?? leases.get(owner) ?? -1,
      token: number("token") ?? null,
      validUntilMs: number("valid") ?? null,
      ...present({ refusal, result: number("result"), deliveredMs: number("delivered") }),
    } satisfies Operation;
  });
}

/** Only the fields that have a value, as exact optional property types require. */
function present<Fields extends object>(fields: Fields): { [Name in keyof Fields]?: NonNullable<Fields[Name]> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Name in keyof Fields]?: NonNullable<Fields[Name]> };
}
