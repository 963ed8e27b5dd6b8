/** A drop-in replacement for redlock 5: the same API, the same keys. See docs/migrate/redlock.md. */
export { ExecutionError, ResourceLockedError } from "./errors.js";
export { default, Lock, type RedlockAbortSignal } from "./redlock.js";
export type { Settings } from "./settings.js";
export type { ClientExecutionResult, ExecutionResult, ExecutionStats } from "./votes.js";
