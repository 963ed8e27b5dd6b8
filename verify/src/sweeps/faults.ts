import type { History } from "../history/history.js";
import type { Fault } from "../history/records.js";

/** When a process was killed. */
export interface Kill {
  readonly process: string;
  readonly atMs: number;
  readonly fault: Fault;
}

/**
 * The kills of clients in a history: faults without an end whose target is a process with operations. Each
 * incarnation dies once; later faults of the same target have no effect.
 */
export function killsOf(history: History): Kill[] {
  const processes = new Set(history.operations.map(({ process }) => process));
  const kills = history.faults
    .filter(({ target, endedMs }) => endedMs === Number.POSITIVE_INFINITY && processes.has(target))
    .map((fault) => ({ process: fault.target, atMs: fault.beganMs, fault }))
    .sort((a, b) => a.atMs - b.atMs);
  return kills.filter(({ process }, at) => kills.findIndex((kill) => kill.process === process) === at);
}

/**
 * The instant by which something is due within `withinMs` from `fromMs`. A fault that forbids it restarts the time at
 * its end. Infinity if a fault has no end.
 */
export function dueAt(history: History, forbidding: ReadonlySet<string>, fromMs: number, withinMs: number): number {
  let dueMs = fromMs + withinMs;
  const faults = history.faults.filter(({ id }) => forbidding.has(id)).sort((a, b) => a.beganMs - b.beganMs);
  for (const { beganMs, endedMs } of faults)
    if (beganMs <= dueMs && endedMs >= fromMs) dueMs = Math.max(dueMs, endedMs + withinMs);
  return dueMs;
}

/** Whether none of those faults strikes, or is still active, in that time. */
export function isCalm(history: History, forbidding: ReadonlySet<string>, fromMs: number, untilMs: number): boolean {
  return !history.faults.some(
    ({ id, beganMs, endedMs }) => forbidding.has(id) && beganMs <= untilMs && endedMs >= fromMs,
  );
}

/** The last instant that the history covers; a wait that is still open then proves nothing later. */
export function lastInstant({ operations, turns, keyScans }: History): number {
  let lastMs = Number.NEGATIVE_INFINITY;
  for (const { callMs, returnMs } of operations)
    lastMs = Math.max(lastMs, Number.isFinite(returnMs) ? returnMs : callMs);
  for (const { endedMs } of turns) lastMs = Math.max(lastMs, endedMs);
  for (const { atMs } of keyScans) lastMs = Math.max(lastMs, atMs);
  return lastMs;
}
