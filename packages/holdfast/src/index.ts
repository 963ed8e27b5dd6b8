/** The public API. Anything not exported here may change without notice. */
export type {
  ArriveOptions,
  Barrier,
  BarrierInspection,
  BarrierOptions,
  Passage,
} from "./barrier/barrier.js";
export { type CloseOnSignalOptions, closeOnSignal } from "./close-on-signal.js";
export type { Condition } from "./condition/condition.js";
export type { CloseOptions, CloseOutcome, HeldLease } from "./core/closing.js";
export {
  AcquireTimeoutError,
  type BreakReason,
  BrokenBarrierError,
  CapacityMismatchError,
  ClosedError,
  EvictionError,
  type Forced,
  type Holder,
  LeaseLostError,
  LockError,
  type LossReason,
  type OverReason,
  type Pause,
  PausedError,
  ProtocolError,
  QuorumError,
  type ServerAnswer,
  StoreError,
  type StoreFailure,
  UnsupportedError,
  WaitTimeoutError,
} from "./core/errors.js";
export type {
  AcquireEvent,
  CallEvent,
  ForcedEvent,
  GrantEvent,
  InboxEvent,
  LockEvent,
  LostEvent,
  PauseEvent,
  ReleaseEvent,
  RenewEvent,
  ResumeEvent,
  UngrantedEvent,
  UngrantedOutcome,
  WaitEvent,
} from "./core/events.js";
export type { Inspection, WaitingClaim } from "./core/inspection.js";
export type { ExportedLease, Lease, ReleaseOutcome } from "./core/lease.js";
export type { ForceReleaseOptions, Lock } from "./core/lock.js";
export {
  type AcquireOptions,
  DEFAULTS,
  type Fairness,
  type RunOptions,
  type TryAcquireOptions,
} from "./core/options.js";
export type { Inbox, Reply, ReplyForm, Script, Store } from "./core/store.js";
export type {
  AwaitOptions,
  CountDownLatch,
  LatchInspection,
  LatchOptions,
} from "./count-down-latch/count-down-latch.js";
export type {
  CampaignOptions,
  Election,
  ElectionOptions,
  ElectionTryOptions,
  Leader,
} from "./election/election.js";
export type { Leadership } from "./election/leadership.js";
export type { ElectionHealth } from "./election/office.js";
export { createHoldfast, type Holdfast, type HoldfastOptions, type LockOptions } from "./holdfast.js";
export type { MultiInspection, MultiLease, MultiLock } from "./multi-lock/multi-lock.js";
export type { Mutex } from "./mutex/mutex.js";
export type { PauseKind, PauseOptions, PauseOutcome, ResumeOptions, ResumeOutcome } from "./pausing/pausing.js";
export type {
  ReadWriteHolder,
  ReadWriteInspection,
  ReadWriteLease,
  ReadWriteLock,
  ReadWriteMode,
  ReadWriteSide,
} from "./read-write-lock/read-write-lock.js";
export type { Redlock } from "./redlock/redlock.js";
export type {
  ReentrantLease,
  ReentrantMutex,
  ReentrantOptions,
  ReentrantTryOptions,
  Reentry,
} from "./reentrant-mutex/reentrant-mutex.js";
export type {
  Semaphore,
  SemaphoreAcquireOptions,
  SemaphoreHolder,
  SemaphoreInspection,
  SemaphoreLease,
  SemaphoreOptions,
  SemaphoreTryAcquireOptions,
} from "./semaphore/semaphore.js";
