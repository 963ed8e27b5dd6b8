/** Checks of single properties over a whole history, in time that depends on its length and not on its concurrency. */
export { type CrashedHolderOptions, crashedHolder } from "./crashed-holder.js";
export { guardedTokens, untornEffects } from "./effects.js";
export { fairOrder } from "./fair-order.js";
export { leaseExclusion } from "./lease-exclusion.js";
export { type LoudLossOptions, loudLoss } from "./loud-loss.js";
export { type OwnersOnlyOptions, ownersOnly } from "./owners-only.js";
export { permitsWithinLimit } from "./permits.js";
export type { Exclusion, Property, SweepResult, Violation } from "./result.js";
export { type SettledWaitsOptions, settledWaits } from "./settled-waits.js";
export { noStarvation, type StarvationOptions } from "./starvation.js";
export { exactTokens, risingTokens, steadyTokens, uniqueTokens } from "./tokens.js";
export { writersAlone } from "./writers-alone.js";
