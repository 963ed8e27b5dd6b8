/**
 * Judges a finished run by its records: runs the sweeps and checks the linearizability of each lock name.
 *
 * Everything after the point at which a fault ended a guarantee is left out; operations in progress at that point
 * have an unknown outcome. In virtual time no tolerance for slow machines is needed: the bounds below are the
 * documented ones plus the simulated network delay.
 */
import type { Fault, History } from "../history/index.js";
import {
  crashedHolder,
  exactTokens,
  fairOrder,
  guardedTokens,
  leaseExclusion,
  loudLoss,
  noStarvation,
  ownersOnly,
  permitsWithinLimit,
  risingTokens,
  type SweepResult,
  settledWaits,
  steadyTokens,
  uniqueTokens,
  untornEffects,
  writersAlone,
} from "../sweeps/index.js";
import { cutAt } from "./cut.js";
import type { Circumstances, Finding } from "./finding.js";
import { linearizability } from "./linearizability.js";
import { claimsAsWaiters, withServerLeases } from "./queue-of-claims.js";

/** The longest time until a waiter polls again, with the slowest clock and a request in flight. */
const POLL_MS = 3_200;
/** How late a lost lease is reported by a timer: whole milliseconds of its clock on an idle event loop. */
const TIMER_MS = 4.1;
/** How late a lost lease is noticed by polling, if the clocks of a process have diverged. */
const LOOK_MS = 1_020;
/** The maximum number of callers that may overtake a waiter: those granted while its own grant's message is in flight. */
const MOST_PASSED = 4;

/**
 * The delay of a hand-over: the message of the grant, and possibly a grant that is passed on by a waiter that was
 * leaving.
 */
const HANDED_OVER_MS = 80;

/** The time limit of the linearizability search. Exceeding it gives "unknown", which is a failure. */
const CHECK_MS = 20_000;

/** @returns the violations, the properties that were decided, and the names that could not be decided */
export function judgeHistory(
  history: History,
  circumstances: Circumstances,
): { readonly found: Finding[]; readonly checked: ReadonlyMap<string, number>; readonly unknown: readonly string[] } {
  const { kind, exclusionUntilMs, tokensUntilMs } = circumstances;
  const exclusive = cutAt(history, exclusionUntilMs);
  const tokens = cutAt(history, tokensUntilMs);
  const results = [...sweeps(kind, exclusive, tokens, history, circumstances)];
  const found = results.flatMap(({ property, violations }) =>
    violations.map(({ message, name, records }) => ({
      property,
      name,
      text: message,
      atMs: Math.max(...records.map(lastMs)),
      records,
    })),
  );
  const { violations, unknown, wornOut, checked } = linearizability(exclusive, circumstances, CHECK_MS);
  const decided = new Map(results.map(({ property, figures }) => [property as string, figures.checked ?? 0]));
  decided.set("S1", checked);
  for (const { property, figures } of results)
    if (figures.prompt !== undefined) decided.set(`${property} to the trip`, figures.prompt);
  decided.set("refusals observed", history.observations.length / 2);
  if (wornOut.length > 0) decided.set("names left out of S1", wornOut.length);
  return { found: [...found, ...violations], checked: decided, unknown };
}

function* sweeps(
  kind: string,
  history: History,
  tokens: History,
  whole: History,
  { hasPartedClocks, settleMs, permits, isOrderly, firstTokens, servedBy, leftMs, shared }: Circumstances,
): Generator<SweepResult> {
  yield leaseExclusion(history);
  yield ownersOnly(history, { epsMs: 0, isOneStep: true });
  yield loudLoss(history, { marginMs: 0, epsMs: hasPartedClocks ? LOOK_MS : TIMER_MS });
  yield uniqueTokens(tokens);
  yield risingTokens(tokens);
  yield steadyTokens(whole);
  yield exactTokens(whole);
  yield guardedTokens(tokens);
  yield untornEffects(tokens);
  // The queue entry of a killed process remains until the server notices, or until the queue expires.
  const killed = new Set(whole.faults.flatMap(({ id, target }) => (id.startsWith("kill-") ? [target] : [])));
  const returned = whole.operations.filter(
    ({ returnMs, process }) => Number.isFinite(returnMs) || !killed.has(process),
  );
  yield settledWaits({ ...whole, operations: returned }, { epsMs: settleMs, rho: 0.01 });
  yield* sharing(kind, history, permits);
  // A client that adopts a lease has not waited for it.
  const operations = history.operations
    .filter(({ verb, outcome, token }) => verb !== "acquire" || outcome !== "ok" || token !== null)
    // Grants that no call returned are recorded separately and are not waits.
    .filter(({ verb, outcome, deliveredMs }) => verb !== "acquire" || outcome !== "info" || deliveredMs === undefined)
    // A steal may overtake everyone.
    .filter(({ args }) => args.steals !== true)
    // The order of grants uses the first token of each owner.
    .map((operation) => ({ ...operation, token: firstTokens.get(operation.owner) ?? operation.token }));
  const waits = { ...history, operations };
  const queue = claimsAsWaiters(waits, shared);
  const deaf = new Set(queue.missed.map(({ operationId }) => operationId));
  const heard = { ...queue, enqueued: queue.enqueued.filter(({ operationId }) => !deaf.has(operationId)) };
  if (isOrderly) yield fairOrder(queue);
  if (kind === "semaphore" || kind === "read-write-lock" || kind === "condition") return;
  // Kills are judged; during all other faults, judging is suspended.
  const forbidding = new Set(history.faults.flatMap((fault) => (isOnlyAKill(fault) ? [] : [fault.id])));
  // A multi-lock is granted lock by lock, but reports it only when it has all of them.
  const isSeen = kind !== "multi-lock";
  const held = withServerLeases(waits, shared);
  yield crashedHolder(held, { pollMs: POLL_MS, epsMs: settleMs, forbidding, ...(isSeen && { servedBy }) });
  if (!isOrderly) return;
  const prompt = isSeen ? { promptMs: HANDED_OVER_MS } : {};
  const bounds = { waiterMs: POLL_MS, ...prompt, epsMs: settleMs, mostPassed: MOST_PASSED };
  yield noStarvation(heard, { ...bounds, leftMs, forbidding });
}

/** X1 and X2, for locks that several clients may hold at the same time. @param permits  of each semaphore */
export function* sharing(kind: string, history: History, permits: number): Generator<SweepResult> {
  if (kind === "semaphore") {
    const names = new Set(history.operations.map(({ lockName }) => lockName));
    yield permitsWithinLimit(history, new Map(Array.from(names, (name) => [name, permits])));
  } else if (kind === "read-write-lock") yield writersAlone(history);
}

/** A kill that the server notices immediately affects only the killed process. */
function isOnlyAKill({ id, beganMs, endedMs }: Fault): boolean {
  return id.startsWith("kill-") || (id.startsWith("unnoticed-") && endedMs <= beganMs);
}

function lastMs(record: SweepResult["violations"][number]["records"][number]): number {
  if (record.type === "operation") return Number.isFinite(record.returnMs) ? record.returnMs : record.callMs;
  if (record.type === "turn" || record.type === "fault") return record.beganMs;
  return record.type === "final-state" ? 0 : record.atMs;
}
