/** Checks whether a concurrent history is linearizable with respect to a sequential model. Independent of locks. */
export { type CheckOptions, type CheckResult, check } from "./check.js";
export type { Model, Timed } from "./model.js";
export { checkPartitions, type PartitionResult } from "./partitions.js";
