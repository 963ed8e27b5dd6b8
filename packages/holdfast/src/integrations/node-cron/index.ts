/** `holdfast/node-cron`: runs each fire of a node-cron schedule on one of the instances that share the schedule. */
export { type RedisRunCoordinator, type RunCoordinatorOptions, runCoordinator } from "./run-coordinator.js";
