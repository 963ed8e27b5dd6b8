/** Whether a concurrent history is linearizable to a sequential model. Knows nothing of locks. */
export { type CheckOptions, type CheckResult, check } from "./check.js";
export type { Model, Timed } from "./model.js";
export { checkPartitions, type PartitionResult } from "./partitions.js";
