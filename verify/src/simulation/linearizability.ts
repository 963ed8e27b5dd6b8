/** S1: the operations on each lock name, put into some order that its sequential model allows. */
import { check, type Model } from "../checker/index.js";
import { CAPS, groupBy, type History, type Operation } from "../history/index.js";
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
import { inTheirTurns } from "./queue-of-claims.js";

type AnyModel = Model<unknown, JudgedOperation>;

/** @param hasTokens  whether all tokens of the history count: then the order of grants is known, and the search is short */
function modelOf({ kind, slowClock, permits: limit }: Circumstances, hasTokens: boolean): AnyModel {
  const unbounded = slowClock.map((time) => ({ ...time, expiry: "late" as const }));
  const expiry = { ...EXPIRY, unbounded };
  if (kind === "count-down-latch") return orZero(latch()) as AnyModel;
  if (kind === "semaphore") return permits({ limit, expiry }) as AnyModel;
  if (kind === "read-write-lock") return readWrite({ expiry }) as AnyModel;
  return (hasTokens ? fenced(expiry) : ownerAware(expiry)) as AnyModel;
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

/** The operations that depend on the lock on the server. The sweeps judge the others. */
function counts(operation: Operation, { isResized, exclusionUntilMs }: Circumstances): boolean {
  const { verb, outcome, refusal, deliveredMs } = operation;
  // A grant that crossed the leaving of its caller has a record of its own, as has one that no call returned with.
  // Nor is known how many permits there were for whom there were too few, if they were fewer for a while.
  if (verb === "acquire" && outcome === "no") return refusal === "busy" && !isResized;
  // The history ends at this instant, and all that is known to have succeeded took effect before. A grant that the server made
  // later cannot explain any of it. As an operation of unknown outcome it could only double the search.
  if (verb === "acquire" && outcome === "info" && deliveredMs !== undefined) return deliveredMs < exclusionUntilMs;
  if (verb === "acquire" || verb === "extend") return outcome !== "info" || deliveredMs !== undefined;
  return true;
}

/**
 * A claim that callers share may be granted, with the message lost, before the caller joins it whom it serves in the
 * end: then it is
 * the lock of nobody who has called so far, and keeps others out from the grant on.
 */
function asGranted(operation: Operation): Operation {
  const { verb, outcome, callMs, deliveredMs = callMs } = operation;
  return verb === "acquire" && outcome === "ok" && deliveredMs < callMs
    ? { ...operation, callMs: deliveredMs }
    : operation;
}

/** A name with more of unknown outcome than a history should have is tried for so long, and left out if that is too short. */
const WORN_OUT_MS = 300;

/** What the search says of all names. */
export interface Linearized {
  readonly violations: Finding[];
  /** Names whose history could not be decided in time. */
  readonly unknown: string[];
  /** Names with so much of unknown outcome that no search can be expected to end; the sweeps judge them all the same. */
  readonly wornOut: string[];
  /** Operations that took part. */
  readonly checked: number;
}

/** Whether each name is linearizable. */
export function linearizability(history: History, circumstances: Circumstances, timeoutMs: number): Linearized {
  const violations: Finding[] = [];
  const unknown: string[] = [];
  const wornOut: string[] = [];
  let checked = 0;
  if (circumstances.kind === "barrier") return { violations, unknown, wornOut, checked };
  // They tell what a single request was answered, which may be for an older grant of the same owner.
  const observed = new Set(history.observations.map(({ operationId }) => operationId));
  for (const [name, all] of groupBy(history.operations, ({ lockName }) => lockName)) {
    if (name.includes(",")) continue;
    const operations = inTheirTurns(
      all.filter((operation) => counts(operation, circumstances) && !observed.has(operation.id)).map(asGranted),
    );
    // A server that forgets its tokens does so at once, and for some names nothing came after.
    const hasTokens = operations.every(
      ({ token, returnMs, deliveredMs }) => token === null || (deliveredMs ?? returnMs) < circumstances.tokensUntilMs,
    );
    const model = modelOf(circumstances, hasTokens);
    const isWornOut = operations.filter(({ outcome }) => outcome === "info").length > CAPS.openInfo;
    const patienceMs = isWornOut ? Math.min(timeoutMs, WORN_OUT_MS) : timeoutMs;
    const { verdict, stuckAt, partials } = check(model, timed(operations), { timeoutMs: patienceMs });
    if (verdict === "unknown") (isWornOut ? wornOut : unknown).push(name);
    else checked += operations.length;
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
  return { violations, unknown, wornOut, checked };
}
