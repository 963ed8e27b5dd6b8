/**
 * `@holdfast/node-cron`: runs a node-cron task on one of the instances that share its schedule, once for each scheduled
 * time.
 */
export { type RedisRunCoordinator, type RunCoordinatorOptions, runCoordinator } from "./run-coordinator.js";
