/**
 * A Holdfast on clocks, timers and random numbers of your own: for simulations of whole systems on virtual time.
 *
 * With `embedded()` on a keyspace whose clock and scheduler are yours too, nothing in a run depends on the machine,
 * and a seed replays it. With `storeFor` what goes to a real server can be seen, or changed, on its way.
 */

export { chooseStores } from "./choose-stores.js";
export { type Runtime, systemRuntime, type Timer } from "./core/runtime.js";
export { redlockAcquire, redlockConfirm, redlockRelease, serverLineage } from "./generated/scripts.js";
export { createHoldfastOn } from "./holdfast.js";
export {
  type Behind,
  type ConfirmAnswer,
  confirmed,
  type Decision,
  decide,
  quorumOf,
  type ServerAnswer,
  tally,
  type Unconfirmed,
} from "./redlock/decision.js";
export { type FailoverGrace, failoverGrace, quorumGrace } from "./server/lineage.js";
export { type ClientParts, clientStore, type Inboxes, type Terms } from "./stores/client-store.js";
export { type StoreForOptions, storeFor } from "./stores/detect.js";
export type { ScriptClient } from "./stores/script-runner.js";
