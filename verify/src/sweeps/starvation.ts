import { groupBy, type History } from "../history/history.js";
import type { Operation } from "../history/records.js";
import { dueAt, isCalm, killsOf, lastInstant } from "./faults.js";
import { Findings, type SweepResult, showMs } from "./result.js";

/** The options for L6. */
export interface StarvationOptions {
  /** How long a dead waiter may delay the next one. */
  readonly waiterMs: number;
  readonly epsMs: number;
  /** More grants than this to callers that asked later count as starvation. */
  readonly mostPassed: number;
  /** The limit used instead of `waiterMs` if only kills struck during the waits; `waiterMs` if absent. */
  readonly promptMs?: number;
  /**
   * When a waiter that timed out had left the queue; Infinity if it had not. Absent if this was not observed: then a
   * waiter counts as waiting until its call returns.
   */
  readonly leftMs?: (waiter: Operation) => number;
  readonly forbidding: ReadonlySet<string>;
}

/**
 * L6: no waiter waits while any number of others are served, and a dead waiter is skipped in time.
 *
 * A dead waiter is checked at the first release after its kill: if another caller waits, the next grant is due within
 * `waiterMs`. It does not matter whether the dead one was first in the queue. A hand-over skips dead waiters in the
 * same step of the server, so only `promptMs` is allowed if nothing but kills has struck since the first relevant
 * call.
 *
 * A waiter that was never granted, and that was considered dead or was frozen at its turn, is not checked. A refused
 * waiter is checked until it left the queue; its process may freeze after that, so that its call returns much later.
 *
 * Figures: `excused`, the number of waiters not checked; `prompt`, the dead waiters checked with `promptMs`;
 * `mostPassed`, the maximum number of grants to later callers during one wait; `longestWaitMs`.
 */
export function noStarvation(history: History, options: StarvationOptions): SweepResult {
  const findings = new Findings("L6");
  const acquires = history.operations.filter(({ verb }) => verb === "acquire");
  const missed = new Set(history.missed.map(({ operationId }) => operationId));
  const acknowledged = new Map(history.enqueued.map(({ operationId, atMs }) => [operationId, atMs]));
  for (const [name, all] of groupBy(acquires, ({ lockName }) => lockName)) {
    const calls = all.filter(({ outcome }) => outcome === "ok").sort((a, b) => a.callMs - b.callMs);
    const passed = passedBy(
      all.filter(({ id }) => acknowledged.has(id)),
      calls,
      acknowledged,
      options,
    );
    for (const { operation, count } of passed) {
      if (operation.outcome !== "ok" && missed.has(operation.id)) {
        findings.count("excused");
        continue;
      }
      findings.most("mostPassed", count);
      if (operation.outcome === "ok") findings.most("longestWaitMs", operation.returnMs - operation.callMs);
      const isStarved = count > options.mostPassed;
      findings.decide(
        name,
        [operation],
        isStarved ? `${operation.owner} waited for "${name}" while ${count} that asked later were served` : undefined,
      );
    }
  }
  deadWaiters(findings, history, acquires, options);
  return findings.result();
}

interface Passed {
  readonly operation: Operation;
  readonly count: number;
}

/**
 * For each waiter, the number of later waiters that were granted during its wait.
 *
 * Its turn is its grant, whose token shows when the server made it. A waiter that froze was served, and must queue
 * again if its lease ended before it noticed. Without tokens, the returns give the order.
 *
 * If a queue works, there are few waiters compared with grants, and each waiter is compared only with grants whose
 * calls began during its wait.
 */
function passedBy(
  waiters: readonly Operation[],
  grants: readonly Operation[],
  acknowledged: ReadonlyMap<number, number>,
  { leftMs }: Pick<StarvationOptions, "leftMs">,
): Passed[] {
  return waiters.map((operation) => {
    const fromMs = acknowledged.get(operation.id) ?? operation.callMs;
    const leftAtMs = operation.outcome === "no" ? leftMs?.(operation) : undefined;
    const untilMs = Math.min(operation.returnMs, leftAtMs ?? Number.POSITIVE_INFINITY);
    let count = 0;
    for (let index = firstAfter(grants, fromMs); index < grants.length; index += 1) {
      const grant = grants[index] as Operation;
      if (grant.callMs >= untilMs) break;
      if (grant.returnMs < untilMs && !isAfter(grant, operation)) count += 1;
    }
    return { operation, count };
  });
}

function isAfter({ token }: Operation, waiter: Operation): boolean {
  return token !== null && waiter.token !== null && token > waiter.token;
}

function firstAfter(operations: readonly Operation[], atMs: number): number {
  let low = 0;
  let high = operations.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((operations[middle] as Operation).callMs <= atMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

function deadWaiters(
  findings: Findings,
  history: History,
  acquires: readonly Operation[],
  { waiterMs, promptMs, epsMs, forbidding }: StarvationOptions,
): void {
  const kills = killsOf(history);
  const diedMs = new Map(kills.map(({ process, atMs }) => [process, atMs]));
  const endMs = lastInstant(history);
  for (const { process, atMs, fault } of kills) {
    const dead = acquires.filter((wait) => wait.process === process && wait.callMs <= atMs && wait.returnMs > atMs);
    for (const wait of dead) {
      const release = history.operations
        .filter(({ verb, outcome, lockName }) => verb === "release" && outcome === "ok" && lockName === wait.lockName)
        .filter(({ callMs }) => callMs > atMs)
        .reduce<Operation | undefined>(
          (least, other) => (least && least.callMs <= other.callMs ? least : other),
          undefined,
        );
      if (release === undefined) continue;
      const others = acquires.filter((other) => other.lockName === wait.lockName && other.process !== process);
      const sinceMs = others
        .filter(({ callMs, returnMs }) => callMs < release.returnMs && returnMs > release.callMs)
        .reduce((first, { callMs }) => Math.min(first, callMs), wait.callMs);
      const soonMs = release.returnMs + (promptMs ?? Number.POSITIVE_INFINITY);
      const isPrompt = soonMs < Number.POSITIVE_INFINITY && isCalm(history, forbidding, sinceMs - epsMs, soonMs);
      const dueMs = isPrompt ? soonMs : dueAt(history, forbidding, release.returnMs, waiterMs + epsMs);
      const waiting = others.find(
        (other) =>
          other.callMs < release.returnMs &&
          Math.min(other.returnMs, diedMs.get(other.process) ?? endMs, endMs) > dueMs,
      );
      const next = others.find(
        ({ outcome, returnMs }) => outcome === "ok" && returnMs > release.callMs && returnMs <= dueMs,
      );
      if (next === undefined && waiting === undefined) continue;
      if (isPrompt) findings.count("prompt");
      const isStuck = next === undefined;
      findings.decide(
        wait.lockName,
        [wait, fault, release, ...(waiting === undefined ? [] : [waiting])],
        isStuck
          ? `"${wait.lockName}" was still not granted at ${showMs(dueMs)}, behind the dead ${wait.owner}`
          : undefined,
      );
    }
  }
}
