/** S1: the operations on each lock name, put into some order that its sequential model allows. */
import { check, type Model } from "../checker/index.js";
import { groupBy, type History, type Operation } from "../history/index.js";
import {
  EXPIRY,
  fenced,
  type JudgedOperation,
  type Latch,
  latch,
  ownerAware,
  permits,
  readWrite,
  timed,
} from "../models/index.js";
import type { Circumstances, Finding } from "./finding.js";

type AnyModel = Model<unknown, JudgedOperation>;

function modelOf({ kind, slowClock, permits: limit, tokensUntilMs }: Circumstances): AnyModel {
  const unbounded = slowClock.map((time) => ({ ...time, expiry: "late" as const }));
  const expiry = { ...EXPIRY, unbounded };
  if (kind === "count-down-latch") return orZero(latch()) as AnyModel;
  if (kind === "semaphore") return permits({ limit, expiry }) as AnyModel;
  if (kind === "read-write-lock") return readWrite({ expiry }) as AnyModel;
  return (tokensUntilMs === Number.POSITIVE_INFINITY ? fenced(expiry) : ownerAware(expiry)) as AnyModel;
}

/** A count-down that answers zero may have found zero, which is then no refusal. */
function orZero(model: Model<Latch, Operation>): Model<Latch, Operation> {
  return {
    ...model,
    step(state, operation) {
      const next = model.step(state, operation);
      const hasFoundZero = operation.verb === "count-down" && operation.result === 0 && (state.left ?? 0) === 0;
      return hasFoundZero ? [...next, state] : next;
    },
  };
}

/** What says something of the lock on the server; the rest is judged by the sweeps. */
function counts({ verb, outcome, refusal, deliveredMs }: Operation): boolean {
  // A grant that crossed the leaving of its caller has a record of its own, as has one that no call returned with.
  if (verb === "acquire" && outcome === "no") return refusal === "busy";
  if (verb === "acquire" || verb === "extend") return outcome !== "info" || deliveredMs !== undefined;
  return true;
}

/** Whether each name is linearizable; `checked` is the number of operations that took part. */
export function linearizability(
  history: History,
  circumstances: Circumstances,
  timeoutMs: number,
): { readonly violations: Finding[]; readonly unknown: string[]; readonly checked: number } {
  const violations: Finding[] = [];
  const unknown: string[] = [];
  let checked = 0;
  if (circumstances.kind === "barrier") return { violations, unknown, checked };
  const model = modelOf(circumstances);
  for (const [name, all] of groupBy(history.operations, ({ lockName }) => lockName)) {
    if (name.includes(",")) continue;
    const operations = all.filter(counts);
    checked += operations.length;
    const { verdict, stuckAt, partials } = check(model, timed(operations), { timeoutMs });
    if (verdict === "unknown") unknown.push(name);
    if (verdict !== "violation") continue;
    const { value } = stuckAt ?? { value: undefined };
    violations.push({
      property: "S1",
      name,
      text:
        `the operations on "${name}" have no order that "${model.name}" allows; ${partials[0]?.length ?? 0} of ` +
        `${operations.length} fit, and then the ${value?.outcome} ${value?.verb} of ${value?.owner} does not`,
      atMs: value?.returnMs ?? 0,
      records: value === undefined ? [] : all.filter(({ id }) => id === value.id),
    });
  }
  return { violations, unknown, checked };
}
