/** `@holdfast/recipes`: common patterns built on locks. */

export { Cache, type CacheGetOptions, cache } from "./cache/cache.js";
export { CacheLoadError } from "./cache/errors.js";
export { type Loader, LoadLease } from "./cache/lease.js";
export type { CacheOptions } from "./cache/options.js";
export { type CoalesceResult, coalesce } from "./coalesce/coalesce.js";
export { CoalesceJoinError } from "./coalesce/errors.js";
export type { CoalesceLease } from "./coalesce/lease.js";
export type { CoalesceOptions } from "./coalesce/options.js";
export { type Codec, jsonCodec } from "./codec.js";
export { type Counter, type CounterOptions, type CounterRequest, counter } from "./counter/counter.js";
export { CounterRequestError } from "./counter/errors.js";
export type { KeptFailure } from "./failure.js";
export { ForeignLockError, StaleTokenError } from "./fence/errors.js";
export { type FenceGuard, fenceGuard } from "./fence/fence-guard.js";
export { type FencedSetOptions, fencedSet } from "./fence/fenced-set.js";
export type { FencingLease } from "./fence/fencing.js";
export { type Keyed, type KeyedResult, keyed } from "./keyed/keyed.js";
export type { KeyedPassed } from "./keyed/marks.js";
export type { KeyedOptions } from "./keyed/options.js";
export { ResignedError } from "./lead/errors.js";
export { lead } from "./lead/lead.js";
export type { LeadOptions, TermEnd } from "./lead/options.js";
export {
  OnceBlockedError,
  OnceFailedError,
  OnceLostError,
  OnceMismatchError,
  OnceRunningError,
  OnceUnavailableError,
  OnceUnrecordedError,
} from "./once/errors.js";
export {
  inspectOnce,
  type OnceInspection,
  type OnceResolution,
  type OnceScope,
  resolveOnce,
} from "./once/inspect-once.js";
export type { OnceLease } from "./once/lease.js";
export { type OnceResult, once } from "./once/once.js";
export type { OnceOptions, OnceOutcome, OncePolicy } from "./once/options.js";
export {
  ONCE_STATES,
  type OnceEntry,
  type OnceState,
  type OnceSurvey,
  type OnceSurveyOptions,
  surveyOnce,
} from "./once/survey.js";
export type { Refusal, RefusalReason } from "./refusal.js";
export type { RunEndedEvent, RunEnding, RunEvent, RunSkippedEvent, RunStartedEvent } from "./run-events.js";
export type { ScheduledOptions } from "./scheduled/options.js";
export type { RunCounts } from "./scheduled/run-log.js";
export { type Scheduled, type ScheduledResult, scheduled } from "./scheduled/scheduled.js";
export { WorkLostError } from "./under-lock.js";
export { UnrecordedError } from "./unrecorded.js";
export { ConflictError } from "./versioned/errors.js";
export type { UpdateOptions } from "./versioned/options.js";
export type { VersionedValue, WriteOutcome } from "./versioned/values.js";
export { Versioned, type VersionedOptions, versioned } from "./versioned/versioned.js";
export type { WaitOptions } from "./wait-options.js";
export {
  SlotsTakenError,
  WorkerSlot,
  type WorkerSlotOptions,
  workerSlot,
} from "./worker-slot/worker-slot.js";
