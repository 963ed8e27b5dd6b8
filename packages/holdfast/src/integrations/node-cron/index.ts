/** `holdfast/node-cron`: of all instances that share a schedule of node-cron, one runs each fire. */
export { type RedisRunCoordinator, type RunCoordinatorOptions, runCoordinator } from "./run-coordinator.js";
