import { type CheckOptions, type CheckResult, check } from "./check.js";
import type { Model, Timed } from "./model.js";
import { processorMs } from "./processor-ms.js";

/** What came of one of several independent things. */
export interface PartitionResult<Key, Value> extends CheckResult<Value> {
  readonly partition: Key;
}

/**
 * Checks each thing by itself: a history is linearizable exactly if that of every single thing is (Herlihy and Wing).
 *
 * `timeoutMs` is for all of them together, so a thing whose turn comes too late is `unknown`.
 */
export function checkPartitions<State, Value, Key>(
  model: Model<State, Value>,
  partitions: ReadonlyMap<Key, readonly Timed<Value>[]>,
  options: CheckOptions = {},
): PartitionResult<Key, Value>[] {
  const deadlineMs = processorMs() + (options.timeoutMs ?? Number.POSITIVE_INFINITY);
  return Array.from(partitions, ([partition, operations]) => {
    const timeoutMs = Math.max(0, deadlineMs - processorMs());
    return { partition, ...check(model, operations, { ...options, timeoutMs }) };
  });
}
