/** S1: checks that the operations on each lock name have an order that its sequential model allows. */
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

/** @param hasTokens  whether all tokens are meaningful: then the order of grants is known, and the search is short */
function modelOf({ kind, slowClock, permits: limit }: Circumstances, hasTokens: boolean): AnyModel {
  const unbounded = slowClock.map((time) => ({ ...time, expiry: "late" as const }));
  const expiry = { ...EXPIRY, unbounded };
  if (kind === "count-down-latch") return orZero(latch()) as AnyModel;
  if (kind === "semaphore") return permits({ limit, expiry }) as AnyModel;
  if (kind === "read-write-lock") return readWrite({ expiry }) as AnyModel;
  return (hasTokens ? fenced(expiry) : ownerAware(expiry)) as AnyModel;
}

/** A count-down that returns zero may have found zero, which is not a refusal then. */
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
function counts(operation: Operation, { kind, isResized, exclusionUntilMs }: Circumstances): boolean {
  const { verb, outcome, refusal, deliveredMs } = operation;
  // A grant that crossed with the caller's leaving has its own record, as does one that no call returned with. If
  // permits were reduced for a while, a refusal for lack of permits cannot be checked.
  // A retained lock is busy for others after its last caller has released it.
  if (verb === "acquire" && outcome === "no") return refusal === "busy" && !isResized && kind !== "retained-mutex";
  // The history ends at this instant, and everything that is known to have succeeded took effect before. A later
  // grant cannot explain any of it. As an operation with an unknown outcome it would only double the search.
  if (verb === "acquire" && outcome === "info" && deliveredMs !== undefined) return deliveredMs < exclusionUntilMs;
  if (verb === "acquire" || verb === "extend") return outcome !== "info" || deliveredMs !== undefined;
  return true;
}

/**
 * A shared claim may be granted before the caller joins that it finally serves, if the message is lost. Until then it
 * holds the lock without belonging to any call, so it counts from the grant on.
 */
function asGranted(operation: Operation): Operation {
  const { verb, outcome, callMs, deliveredMs = callMs } = operation;
  return verb === "acquire" && outcome === "ok" && deliveredMs < callMs
    ? { ...operation, callMs: deliveredMs }
    : operation;
}

/**
 * The time limit for names with more unknown outcomes than a history should have; they are left out if it is
 * exceeded.
 */
const WORN_OUT_MS = 300;

/** The result for all names. */
export interface Linearized {
  readonly violations: Finding[];
  /** Names that could not be decided in time. */
  readonly unknown: string[];
  /** Names with so many unknown outcomes that no search is expected to finish; the sweeps still judge them. */
  readonly wornOut: string[];
  /** The number of operations included. */
  readonly checked: number;
}

/** Checks whether each name is linearizable. */
export function linearizability(history: History, circumstances: Circumstances, timeoutMs: number): Linearized {
  const violations: Finding[] = [];
  const unknown: string[] = [];
  const wornOut: string[] = [];
  let checked = 0;
  if (circumstances.kind === "barrier") return { violations, unknown, wornOut, checked };
  // Observations show the reply to a single request, which may be for an older grant of the same owner.
  const observed = new Set(history.observations.map(({ operationId }) => operationId));
  for (const [name, all] of groupBy(history.operations, ({ lockName }) => lockName)) {
    if (name.includes(",")) continue;
    const operations = inTheirTurns(
      all.filter((operation) => counts(operation, circumstances) && !observed.has(operation.id)).map(asGranted),
    );
    // A server that loses its tokens does so immediately, and some names have no operations afterward.
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
