/** Rates and waits from a history: how often a process held the lock, and how long callers waited. */
import type { HistoryRecord, Operation } from "../../history/records.js";

/** The number of grants of a lock to a process between two instants. */
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
 * The longest wait for a lock within a time span: the part of each acquire that lies in it, whatever its outcome. An
 * acquire without a result waits until the end. 0 if no caller waited.
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
