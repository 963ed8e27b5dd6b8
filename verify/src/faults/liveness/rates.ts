/** From a history: how often a process had the lock, and how long anybody waited for it. */
import type { HistoryRecord, Operation } from "../../history/records.js";

/** Grants of a lock to a process from one instant until another. */
export function grantsIn(
  records: readonly HistoryRecord[],
  { process, lockName, fromMs, untilMs }: { process: string; lockName: string; fromMs: number; untilMs: number },
): number {
  return acquiresOf(records, lockName).filter(
    (operation) =>
      operation.process === process &&
      operation.outcome === "ok" &&
      operation.returnMs >= fromMs &&
      operation.returnMs < untilMs,
  ).length;
}

/**
 * The longest wait for a lock within a time: what lies in it of each acquire, whatever came of that one. An acquire that is not
 * answered waits until the end. 0 if no caller waited.
 */
export function longestWaitMs(
  records: readonly HistoryRecord[],
  { lockName, fromMs, untilMs }: { lockName: string; fromMs: number; untilMs: number },
): number {
  return acquiresOf(records, lockName).reduce(
    (longest, { callMs, returnMs }) => Math.max(longest, Math.min(returnMs, untilMs) - Math.max(callMs, fromMs)),
    0,
  );
}

function acquiresOf(records: readonly HistoryRecord[], lockName: string): Operation[] {
  return records.filter(
    (record): record is Operation =>
      record.type === "operation" && record.verb === "acquire" && record.lockName === lockName,
  );
}
