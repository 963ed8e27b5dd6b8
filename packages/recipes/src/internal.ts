/**
 * `@holdfast/recipes/internal`: the entry point for the other packages of this repository.
 *
 * Unstable: anything here may change or disappear in any version, including patch releases. Applications use
 * `@holdfast/recipes`.
 */

export { checkFencing, type Mark, refuseBy } from "./fence/fencing.js";
export * as scripts from "./generated/scripts.js";
export { resolveLead } from "./lead/options.js";
export { checkBytes, nameOf } from "./names.js";
export { checkComparable } from "./once/fingerprint.js";
export { type Refusal, refusalOf } from "./refusal.js";
export { checkHistory, resolveScheduled } from "./scheduled/options.js";
export { type BegunRun, type RunCounts, RunLog } from "./scheduled/run-log.js";
export { type Holdable, lockNamed, type MakeLock, runUnder, WorkLostError } from "./under-lock.js";
