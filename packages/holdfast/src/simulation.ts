/**
 * Runs a Holdfast with your own clocks, timers and random numbers, to simulate whole systems in virtual time.
 *
 * With `embedded()` on a keyspace that also uses your clock and scheduler, nothing in a run depends on the machine, and
 * the same seed replays the same run. With `storeFor` you can observe or change the requests to a real server.
 */

export { chooseStores } from "./choose-stores.js";
export { type Runtime, systemRuntime, type Timer } from "./core/runtime.js";
export { redlockAcquire, redlockConfirm, redlockRelease } from "./generated/redlock.js";
export { serverLineage } from "./generated/server.js";
export { createHoldfastOn } from "./holdfast.js";
export { quorumGrace } from "./quorum-grace.js";
export {
  type AcquireVote,
  type ConfirmAnswer,
  confirmed,
  type Decision,
  decide,
  type LaggingServer,
  quorumOf,
  tally,
  type Unconfirmed,
} from "./redlock/decision.js";
export { type FailoverGrace, failoverGrace } from "./server/lineage.js";
export { inspectSlot } from "./server/shard.js";
export { type ClientParts, clientStore, type GrantConditions, type Inboxes } from "./stores/client-store.js";
export { type StoreForOptions, storeFor } from "./stores/detect.js";
export type { ScriptClient } from "./stores/script-runner.js";
