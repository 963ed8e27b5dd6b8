/** `holdfast/recipes`: what people build on a lock. */
export { Cache, type CacheGetOptions, cache } from "./cache/cache.js";
export { CacheLoadError } from "./cache/errors.js";
export { type Loader, LoadLease } from "./cache/lease.js";
export type { CacheOptions } from "./cache/options.js";
export { type Codec, jsonCodec } from "./codec.js";
export type { KeptFailure } from "./failure.js";
export {
  OnceBlockedError,
  OnceFailedError,
  OnceLostError,
  OnceMismatchError,
  OnceRunningError,
  OnceUnavailableError,
  OnceUnrecordedError,
} from "./once/errors.js";
export type { OnceLease } from "./once/lease.js";
export { inspectOnce, type OnceInspection, type OnceResolution, type OnceScope, resolveOnce } from "./once/looking.js";
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
export { ConflictError } from "./versioned/errors.js";
export type { UpdateOptions } from "./versioned/options.js";
export type { VersionedValue, WriteOutcome } from "./versioned/values.js";
export { Versioned, type VersionedOptions, versioned } from "./versioned/versioned.js";
export type { WaitOptions } from "./wait-options.js";
