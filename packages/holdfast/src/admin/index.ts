/**
 * `holdfast/admin`: functions that inspect all locks, their clients and their history. They are meant for operators and
 * their tools. Applications do not need them to acquire locks.
 */

export { type ExtendPauseOptions, type ExtendPauseOutcome, extendPause } from "../pausing/extend-pause.js";
export { serverTimeMs } from "../period-marker/index.js";
export { type ClientClaim, type ClientEntry, type ClientsOptions, clients } from "./clients.js";
export {
  type Deadlock,
  type DeadlockClaim,
  type DeadlockMember,
  type DeadlockOptions,
  type FoundDeadlocks,
  findDeadlocks,
} from "./deadlocks.js";
export {
  type EntryCondition,
  type EntryHolder,
  type EntryServer,
  type EntryWaiter,
  LOCK_KINDS,
  type LockEntry,
  type LockKind,
  type LockMode,
  type LockState,
} from "./entry.js";
export { appendHistory, type HistoryEvent, type HistoryWord, type KeepOptions } from "./history.js";
export { HISTORY_OUTCOMES, type HistoryEntry, type HistoryOutcome } from "./history-entries.js";
export { type LookUpOptions, lookUp, lookUpConditions } from "./look-up.js";
export { type ReadHistoryOptions, readHistory } from "./read-history.js";
export {
  type HistoryRecorder,
  type HistoryTroubleEvent,
  type RecordOptions,
  recordHistory,
} from "./record-history.js";
export { type Surveyed, type SurveyOptions, type SurveyPage, survey, surveyAll } from "./survey.js";
