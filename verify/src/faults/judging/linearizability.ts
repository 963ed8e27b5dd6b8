/** S1: each lock of a history is linearizable to the model of its kind. */
import { check, type Model } from "../../checker/index.js";
import { groupBy, type History } from "../../history/history.js";
import { CAPS, widths } from "../../history/hygiene.js";
import type { Fault, Operation } from "../../history/records.js";
import {
  EXPIRY,
  type ExpiryRules,
  fenced,
  type Latch,
  latch,
  ownerAware,
  permits,
  readWrite,
  reentrantFenced,
  timed,
} from "../../models/index.js";
import type { Letter } from "../cell.js";
import { LIMIT } from "../programs/messages.js";
import type { Found } from "./found.js";
import { driftOf, unboundedOf } from "./grounds.js";
import { lateAcquires } from "./late-requests.js";

/** The time limit per name. Exceeding it means undecided, which counts as a failure. */
const TIMEOUT_MS = 20_000;
const MAX_HOLD = 2;
/**
 * Far more than a workload puts on one name; only an intended crowd (J08) is as wide, and its search would not
 * finish.
 */
const TOO_WIDE = 4 * CAPS.concurrent;
/**
 * Each operation with an unknown outcome doubles the search. With more than this many, no search is expected to
 * finish.
 */
const TOO_DOUBTFUL = CAPS.openInfo / 2;

/** The result for all names. */
export interface Linearizability {
  readonly found: readonly Found[];
  /** The number of operations in decided names. */
  readonly checked: number;
  /** Undecided names. */
  readonly unknown: readonly string[];
  /** Names whose search would not finish. The sweeps judge them, because sweeps need no order. */
  readonly crowded: readonly string[];
}

/** Checks all names of a history. */
export function linearizability(history: History, letter: Letter, comparesTokens: boolean): Linearizability {
  const expiry: ExpiryRules = { rho: driftOf(history), unbounded: unboundedOf(history) };
  const found: Found[] = [];
  const unknown: string[] = [];
  let checked = 0;
  const crowded = widths(history.operations)
    .filter(({ concurrent }) => concurrent > TOO_WIDE)
    .map(({ lockName }) => lockName);
  const queued = groupBy(history.enqueued, ({ operationId }) => operationId);
  const answersTo = ({ id }: Operation): number => queued.get(id)?.length ?? 0;
  // A caller of a shared claim may have waited with several claims, and only the replies for the first are known.
  const mayShare = letter === "m" || letter === "r";
  for (const [lockName, operations] of groupBy(history.operations, (operation) => operation.lockName)) {
    if (crowded.includes(lockName)) continue;
    const repeated = operations.filter((operation) => mayHaveCountedBefore(operation, history.faults));
    const possible = [
      ...operations,
      ...operations.flatMap((operation) => unheard(operation, mayShare ? Infinity : answersTo(operation))),
      ...repeated.map(countedBefore),
      ...operations.slice(0, 1).flatMap(({ kind }) => lateAcquires(history.faults, lockName, kind)),
    ];
    const result = checkName(letter, comparesTokens, expiry, possible, new Set(repeated.map(({ id }) => id)));
    const doubtful = possible.filter(({ outcome, refusal }) => outcome === "info" || refusal === "gave-up").length;
    if (result.verdict === "unknown") (doubtful > TOO_DOUBTFUL ? crowded : unknown).push(lockName);
    else checked += operations.length;
    if (result.verdict !== "violation") continue;
    const { stuckAt } = result;
    const what = stuckAt === undefined ? "no order is legal" : `no legal order passes ${describe(stuckAt)}`;
    found.push({
      property: "S1",
      lockName,
      message: `"${lockName}" is not linearizable: ${what}`,
      records: stuckAt === undefined ? [] : [stuckAt],
    });
  }
  return { found, checked, unknown, crowded };
}

interface NameResult {
  readonly verdict: "ok" | "violation" | "unknown";
  readonly stuckAt: Operation | undefined;
}

function checkName(
  letter: Letter,
  comparesTokens: boolean,
  expiry: ExpiryRules,
  operations: readonly Operation[],
  repeated: ReadonlySet<number>,
): NameResult {
  const judged = timed(operations.map(mayGiveBack));
  const run = <State>(model: Model<State, Operation>): NameResult => {
    const { verdict, stuckAt } = check(model, judged, { timeoutMs: TIMEOUT_MS });
    return { verdict, stuckAt: stuckAt?.value };
  };
  switch (letter) {
    case "r":
      return run(reentrantFenced(MAX_HOLD, expiry));
    case "w":
      return run(readWrite({ expiry }));
    case "s":
      return run(permits({ limit: LIMIT, expiry }));
    case "l":
      return run(toldLater(latch(), repeated));
    default:
      return run(comparesTokens ? fenced(expiry) : ownerAware(expiry));
  }
}

/**
 * The grants that a waiter did not notice: the message was lost, or arrived while its process was frozen.
 *
 * The server then reserves the lock for it until the lease ends, refuses others meanwhile, and the waiter polls
 * again. So there is at most one for each full lease of the wait, one for each reply that it is queued, and one for
 * the first request, if its reply came too late. A multi-lock waits with claims that are not recorded.
 */
function unheard(operation: Operation, answers: number): Operation[] {
  const { verb, args, callMs, returnMs, owner, kind, outcome } = operation;
  if (verb !== "acquire" || args.leaseMs === undefined || !Number.isFinite(returnMs)) return [];
  const leases = Math.floor((returnMs - callMs) / (args.leaseMs * (1 - EXPIRY.rho)));
  const most = kind === "multi-lock" ? leases : Math.min(leases, answers + 1);
  // An operation with an unknown outcome already covers this.
  if (outcome === "info") return [];
  return Array.from({ length: most }, (_, index) => ({
    ...operation,
    outcome: "no" as const,
    refusal: "gave-up" as const,
    owner: `${owner}~${index}`,
    token: null,
    validUntilMs: null,
  }));
}

/** Faults that close connections; requests in progress are resent on the next connection. */
const CUTS = /^(?:J(?:09|1\d|2\d|3\d)|pair)/;
/** No connection is restored faster. */
const BACK_AFTER_MS = 20;
/** No request times out faster in a fault run. */
const TIMED_OUT_AFTER_MS = 400;

/**
 * Whether a request may have been resent. That happens only if its reply did not arrive, and it takes time: after a
 * closed connection until the next one is open, otherwise (for example on a suspended machine) until the request
 * times out.
 */
function mayHaveCountedBefore({ verb, callMs, returnMs, outcome }: Operation, faults: readonly Fault[]): boolean {
  if (verb !== "count-down" || outcome === "no") return false;
  if (returnMs >= callMs + TIMED_OUT_AFTER_MS) return true;
  return faults.some(
    ({ id, beganMs, endedMs }) =>
      CUTS.test(id) && returnMs >= callMs + BACK_AFTER_MS && beganMs <= returnMs && endedMs >= callMs,
  );
}

/**
 * A count-down that was resent because its reply was lost may have counted for an earlier count. The later copy then
 * only returns the remaining value (see `toldLater`), so its effect is a separate step.
 */
function countedBefore(counted: Operation): Operation {
  const { result: _, ...operation } = counted;
  const args = operation.args.callerId === undefined ? {} : { callerId: `${operation.args.callerId}~` };
  return { ...operation, outcome: "info", returnMs: Number.POSITIVE_INFINITY, args: { ...operation.args, ...args } };
}

/** A caller that gives up, or does not know whether it was granted, may release what it has at any time. */
function mayGiveBack(operation: Operation): Operation {
  if (operation.verb !== "acquire" || operation.outcome !== "info") return operation;
  return { ...operation, refusal: "gave-up" };
}

/**
 * A count-down that returns 0 may have found 0, which is not a refusal then. A copy of a request that has already
 * counted, which only those in `repeated` can be, returns the remaining value and changes nothing.
 */
function toldLater(model: Model<Latch, Operation>, repeated: ReadonlySet<number>): Model<Latch, Operation> {
  return {
    ...model,
    step(state, operation) {
      const next = model.step(state, operation);
      if (operation.verb !== "count-down" || operation.outcome !== "ok") return next;
      const left = state.left ?? 0;
      const isTold = operation.result === left && (left === 0 || repeated.has(operation.id));
      return isTold ? [...next, state] : next;
    },
  };
}

function describe({ verb, outcome, owner, id, process }: Operation): string {
  return `${verb} ${outcome} by ${owner} of ${process} (operation ${id})`;
}
