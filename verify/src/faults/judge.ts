/**
 * Judges the properties of a fault run's history, with the same checks that judge all histories.
 *
 * It does not know what the cell expects: it reports violations, and the runner decides whether they are failures or
 * what a control has to show. Properties whose ground a fault takes away are not judged during that fault
 * (judging/grounds.ts).
 */
import type { History } from "../history/history.js";
import { isHandedOn } from "../history/lease-names.js";
import type { Missed, Operation } from "../history/records.js";
import { killsOf } from "../sweeps/faults.js";
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
import type { Cell, Letter } from "./cell.js";
import { isQuorum } from "./columns.js";
import { answeredSuccesses } from "./judging/answers.js";
import { judgeBarriers } from "./judging/barriers.js";
import { contention } from "./judging/contenders.js";
import { breachesOf, type Found, foundBy } from "./judging/found.js";
import { EPS_MS, hinderingOf, missedOf, POLL_MS, pausesOf, slowTimesOf } from "./judging/grounds.js";
import { linearizability } from "./judging/linearizability.js";
import { namedScans } from "./judging/named-scans.js";
import { asSaid } from "./judging/said-held.js";
import { lostSignals } from "./judging/signals.js";
import { noLostWakeUp } from "./judging/wake-ups.js";
import type { Judgement } from "./parts.js";
import { LIMIT } from "./programs/messages.js";
import { wordsOf } from "./subjects/peers.js";

/** What a judge must know besides the history. */
export interface JudgeContext {
  /** For a peer only safety is judged, because it guarantees no times. */
  readonly subject: string;
  /** The command timeout, in ms. */
  readonly commandTimeoutMs: number;
}

/** A wait that times out while the server does not reply sends one more request, which may take this long. */
const LAST_WORD_MS = 200;
/** The largest difference in rate between two clocks (A1). */
const RHO = 0.01;
/**
 * Replies and messages sent at the same instant arrive in any order, so this many callers may seem to have overtaken
 * another.
 */
const MOST_PASSED = 3;

/** Judges a history. */
export function judge(cell: Cell, given: History, { subject, commandTimeoutMs }: JudgeContext): Judgement {
  const missed = [...given.missed, ...missedOf(given)];
  const history: History = { ...given, missed, keyScans: namedScans(given, cell) };
  const isOurs = subject === "holdfast";
  const found: Found[] = [];
  const checked: Record<string, number> = {};
  const notes: string[] = [];
  const count = (property: string, cases: number): void => {
    checked[property] = (checked[property] ?? 0) + cases;
  };
  for (const sweep of [
    ...safety(cell, history, subject),
    ...(isOurs ? liveness(cell, history, commandTimeoutMs) : []),
  ]) {
    found.push(...foundBy(sweep));
    count(sweep.property, sweep.figures.checked ?? 0);
    if (sweep.exclusions.length > 0) notes.push(`${sweep.property}: ${exclusionsOf(sweep)}`);
  }
  if (isOurs) {
    const answers = answeredSuccesses(history);
    found.push(...answers.found);
    count("S5", answers.checked);
    const wakeUps = noLostWakeUp(history, { withinMs: POLL_MS + EPS_MS, forbidding: hinderingOf(history) });
    found.push(...wakeUps.found);
    count("L3", wakeUps.checked);
    if (wakeUps.checked > 0)
      notes.push(`L3: the slowest grant came ${wakeUps.slowestMs.toFixed(1)} ms after a release`);
  }
  if (cell.row === "R8") {
    const leaseMs = history.operations.reduce((most, { args }) => Math.max(most, args.leaseMs ?? 0), 0);
    const contended = contention(history, leaseMs);
    found.push(...contended.found);
    count("L2", contended.checked);
  }
  if (cell.letter === "c") {
    const signals = lostSignals(history);
    found.push(...signals.found);
    count("L3", signals.checked);
  }
  if (cell.letter === "b") {
    const barriers = judgeBarriers(history, 4 * commandTimeoutMs + EPS_MS);
    found.push(...barriers.found);
    for (const [property, cases] of Object.entries(barriers.checked)) count(property, cases);
  }
  // The results of barriers and conditions are judged above; they have no sequential order.
  const ordered = inOneOrder(cell, history.operations);
  const linear = linearizability({ ...history, operations: ordered }, cell.letter, isOurs);
  found.push(...linear.found);
  count("S1", linear.checked);
  if (linear.unknown.length > 0) notes.push(`S1 is undecided for ${linear.unknown.join(", ")}`);
  if (linear.crowded.length > 0)
    notes.push(`S1 is not judged for ${linear.crowded.join(", ")}: too many concurrent or unknown operations`);

  const handedOn = history.operations.filter(isHandedOn).length;
  if (handedOn > 0) notes.push(`${handedOn} leases were handed on by the previous caller, without a request`);
  const shown = breachesOf(found, history, cell.id);
  return {
    breaches: shown.breaches,
    breached: shown.breached,
    checked,
    unknown: linear.unknown.length,
    notes: [...notes, ...shown.notes],
  };
}

/**
 * The operations that one server, or a majority, has ordered. A promoted server in its quiet time shows the state of
 * its predecessor. Two independent servers may each refuse both of two simultaneous callers.
 */
function inOneOrder({ row, column }: Cell, operations: readonly Operation[]): Operation[] {
  if (/-(?:grace|strict)$/.test(row) || row === "R8") return [];
  return operations
    .filter(({ kind }) => kind !== "barrier" && kind !== "condition")
    .filter(({ verb, refusal }) => !(isQuorum(column) && verb === "acquire" && refusal === "busy"));
}

function safety({ letter, judged }: Cell, history: History, subject: string): SweepResult[] {
  const isOurs = subject === "holdfast";
  const exclusion = (sweep: (given: History) => SweepResult): SweepResult =>
    isOurs ? sweep(history) : asSaid(history, sweep);
  const names = new Set(history.operations.map(({ lockName }) => lockName));
  return [
    ...(isHeld(letter)
      ? [
          ownersOnly(history, { epsMs: EPS_MS }),
          ...(isOurs ? [loss(history)] : saidLoss(loss(history), subject, letter)),
        ]
      : []),
    ...(letter === "s"
      ? [exclusion((given) => permitsWithinLimit(given, new Map(Array.from(names, (name) => [name, LIMIT]))))]
      : []),
    ...(letter === "w" ? [exclusion(writersAlone)] : []),
    ...("swlb".includes(letter) ? [] : [exclusion(leaseExclusion)]),
    ...(isHeld(letter)
      ? [uniqueTokens(history), risingTokens(history), steadyTokens(history), exactTokens(history)]
      : []),
    // A resource that does not check tokens need not accept them in order.
    ...(judged === "effects" && letter !== "t" ? [] : [guardedTokens(history)]),
    untornEffects(history),
  ];
}

/** Whether the kind has leases. A latch and a barrier do not, because they exclude no caller. */
function isHeld(letter: Letter): boolean {
  return !"lb".includes(letter);
}

function loss(history: History): SweepResult {
  return loudLoss(alive(history), { marginMs: 0, epsMs: EPS_MS });
}

/**
 * S4, limited to what a subject can report: without `isHeld` it cannot be wrong about anything, and without a signal
 * it cannot report a loss too late.
 */
function saidLoss(result: SweepResult, subject: string, letter: Letter): SweepResult[] {
  const { held, signal } = wordsOf(subject);
  if (!held) return [];
  if (signal.includes(letter)) return [result];
  return [{ ...result, violations: result.violations.filter(({ message }) => !message.startsWith("S4c")) }];
}

function liveness({ letter }: Cell, history: History, commandTimeoutMs: number): SweepResult[] {
  if (!isHeld(letter)) return [];
  const forbidding = hinderingOf(history);
  // Excludes processes that died or were considered dead.
  const gone = new Set(history.missed.map(({ operationId }) => operationId));
  for (const { id, outcome } of history.operations) if (outcome === "info") gone.add(id);
  const inQueue: History = {
    ...history,
    enqueued: history.enqueued.filter(({ operationId }) => !gone.has(operationId)),
  };
  const leaseMs = history.operations.reduce((most, { args }) => Math.max(most, args.leaseMs ?? 0), 0);
  return [
    crashedHolder(history, { pollMs: POLL_MS, epsMs: EPS_MS, forbidding, sharedRho: RHO }),
    settledWaits(patient(history, letter, commandTimeoutMs), { epsMs: EPS_MS + LAST_WORD_MS, rho: RHO, forbidding }),
    ...(letter === "f"
      ? [
          fairOrder({ ...history, missed: [...history.missed, ...grantedBefore(history)] }),
          noStarvation(inQueue, {
            waiterMs: leaseMs + POLL_MS,
            epsMs: EPS_MS,
            mostPassed: MOST_PASSED,
            forbidding,
          }),
        ]
      : []),
  ];
}

/**
 * For X3: a waiter whose grant came so late that it had to poll again was first granted at its turn. The only record
 * of this is a reply that arrived long before the return.
 */
function grantedBefore({ operations }: History): Missed[] {
  return operations
    .filter(({ verb, answeredMs, returnMs }) => verb === "acquire" && returnMs - (answeredMs ?? returnMs) > EPS_MS)
    .map(({ id, lockName, callMs }) => ({ type: "missed", atMs: callMs, lockName, operationId: id }));
}

/** For S4: a process that was killed just after a loss was due had no time to report it. */
function alive(history: History): History {
  const diedMs = new Map(killsOf(history).map(({ process, atMs }) => [process, atMs]));
  const turns = history.turns.filter(
    ({ process, endedMs }) => endedMs + EPS_MS < (diedMs.get(process) ?? Number.POSITIVE_INFINITY),
  );
  return { ...history, turns };
}

/**
 * For L4: a single attempt waits for the server's reply, so it has no wait limit to exceed. If the connection is
 * disturbed, the end of a wait takes as long as its last requests may: one to check the holder and one to leave, and
 * for a multi-lock as many to release its members. A process that did not run could not settle anything.
 */
function patient(history: History, letter: Letter, commandTimeoutMs: number): History {
  const pauses = pausesOf(history.turns);
  const stood = ({ process, callMs, returnMs, args }: Operation): boolean => {
    const dueMs = Math.min(callMs + (args.waitMs ?? Number.POSITIVE_INFINITY), args.abortedAtMs ?? returnMs, returnMs);
    return (pauses.get(process) ?? []).some(({ beganMs, endedMs }) => beganMs <= returnMs && endedMs >= dueMs - EPS_MS);
  };
  const slow = slowTimesOf(history);
  // An election additionally stores its value after it is won.
  const lastWordMs = ("ke".includes(letter) ? 4 : 2) * commandTimeoutMs;
  const operations = history.operations
    .filter((operation) => operation.verb !== "acquire" || !stood(operation))
    .map((operation) => {
      const { verb, args, callMs, returnMs } = operation;
      if (verb !== "acquire" || args.waitMs === undefined) return operation;
      if (args.waitMs === 0) {
        const { refusal: _, ...rest } = operation;
        return { ...rest, args: { ...args, waitMs: 2 * commandTimeoutMs } };
      }
      const dueMs = Math.min(callMs + args.waitMs, args.abortedAtMs ?? Number.POSITIVE_INFINITY);
      const isSlow = slow.some(
        ({ beganMs, endedMs }) => beganMs <= returnMs && endedMs + commandTimeoutMs >= dueMs - commandTimeoutMs,
      );
      const lateMs = Math.min(Math.max(0, returnMs - dueMs), lastWordMs);
      if (!isSlow || lateMs === 0) return operation;
      const aborted = args.abortedAtMs === undefined ? {} : { abortedAtMs: args.abortedAtMs + lateMs };
      return { ...operation, args: { ...args, waitMs: args.waitMs + lateMs, ...aborted } };
    });
  return { ...history, operations };
}

function exclusionsOf({ exclusions }: SweepResult): string {
  const reasons = new Map<string, number>();
  for (const { reason } of exclusions) {
    const general = reason.replaceAll(/\d+/g, "#");
    reasons.set(general, (reasons.get(general) ?? 0) + 1);
  }
  return Array.from(reasons, ([reason, cases]) => `${cases} left out because ${reason}`).join("; ");
}
