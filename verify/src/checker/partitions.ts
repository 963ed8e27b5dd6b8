import { type CheckOptions, type CheckResult, check } from "./check.js";
import type { Model, Timed } from "./model.js";
import { processorMs } from "./processor-ms.js";

/** The result for one of several independent objects. */
export interface PartitionResult<Key, Value> extends CheckResult<Value> {
  readonly partition: Key;
}

/**
 * Checks each object separately: a history is linearizable if and only if the history of each object is (Herlihy and
 * Wing).
 *
 * `timeoutMs` is the limit for all objects together; objects that are not reached in time are `unknown`.
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
