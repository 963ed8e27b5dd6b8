/** `holdfast/recipes`: what people build on a lock. */
export { LeadLostError, ResignedError } from "./lead/errors.js";
export { lead } from "./lead/lead.js";
export type { LeadOptions, TermEnd } from "./lead/options.js";
export { type Codec, jsonCodec } from "./once/codec.js";
export {
  type KeptFailure,
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
export {
  SlotsTakenError,
  WorkerSlot,
  type WorkerSlotOptions,
  workerSlot,
} from "./worker-slot/worker-slot.js";
