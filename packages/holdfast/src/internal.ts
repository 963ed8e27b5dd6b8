/**
 * `holdfast/internal`: the entry point for the other packages of this repository.
 *
 * Unstable: anything here may change or disappear in any version, including patch releases. Applications use
 * `holdfast`.
 *
 * The other packages import core, kinds and stores only through this file (and public names through `holdfast`), so
 * that internal files can be merged and renamed freely. tests/tidy/imports.ts checks this rule.
 */

export { type Glob, readGlob } from "./admin/glob.js";
export { checkKeep, type HistoryEvent } from "./admin/history.js";
export { unescaped } from "./admin/key-names.js";
export { Outbox } from "./admin/outbox.js";
export { eachOf, identitiesOf, type Place, placeOf } from "./admin/place.js";
export { type FoundHistory, searchHistory } from "./admin/read-history.js";
export { cursorText, KeyScan, readCursor } from "./admin/scan.js";
export { barrierProtocol } from "./barrier/protocol.js";
export { inspectionOf } from "./condition/protocol.js";
export { acquire, type MakeLease, timeoutError } from "./core/acquire.js";
export { call, type NamedStore } from "./core/call.js";
export type { Settled } from "./core/closing.js";
export { instant, quote } from "./core/error-messages.js";
export {
  type CommandEvent,
  channels,
  type DeedEvent,
  idOf,
  type PublishedCall,
  publishAcquire,
  publishingEnds,
  publishUngranted,
  serverOf,
} from "./core/events.js";
export { Hold, hold } from "./core/hold.js";
export { describe, describeClaim, describeHolder, type RecordReader } from "./core/inspection.js";
export {
  checkKey,
  checkLabel,
  checkName,
  checkRequestId,
  checkResource,
  checkValue,
  type LockKeys,
  lockKeys,
  mappedKeys,
  show,
  unknownOption,
} from "./core/keys.js";
export { askAsHolder, Lease } from "./core/lease.js";
export { Lock, type LockParts } from "./core/lock.js";
export type { Filled } from "./core/options.js";
export {
  ACQUIRE_OPTIONS,
  checkLeaseMs,
  checkWhole,
  isAbortSignal,
  NONE,
  nativeSignal,
  onAbort,
  type ResolvedOptions,
  resolve,
} from "./core/options.js";
export { SHORTEST_CALL_MS } from "./core/polling.js";
export type {
  AcquireReply,
  Claim,
  ForcedRelease,
  Grant,
  InspectProtocol,
  LockProtocol,
  NotHeld,
  State,
  WaitProtocol,
} from "./core/protocol.js";
export { NOTHING_RUNS, parseOwner, type TimedOut, type WaitEnds } from "./core/protocol.js";
export { cleanUp, insist } from "./core/release.js";
export type { Runtime, Timer } from "./core/runtime.js";
export { SharedTimer } from "./core/runtime.js";
export type { ClientRecord, Occupant, Session } from "./core/session.js";
export { fixed, inert, type Outcome, type ScriptText, type ServerAddress, sha1Of } from "./core/store.js";
export { Deadline, DRIFT_RATE, now } from "./core/time.js";
export { Waiter } from "./core/waiter.js";
export { latchProtocol } from "./count-down-latch/protocol.js";
export { delay } from "./election/delay.js";
export { Election } from "./election/election.js";
export { Leadership } from "./election/leadership.js";
export { observe } from "./election/observer.js";
export { type Office, officeOf, offices } from "./election/office.js";
export { ElectionProtocol } from "./election/protocol.js";
export { ForeignLock, type ForeignParts } from "./foreign-lock/foreign-lock.js";
export { ForeignWaiter, type Pauses } from "./foreign-lock/foreign-waiter.js";
export { lineOfOne } from "./foreign-lock/line.js";
export { checkKnown, graceOf } from "./holdfast-options.js";
export { anyInternalsOf, type Internals, internalsOf } from "./internals.js";
export { MultiLease, MultiLock } from "./multi-lock/multi-lock.js";
export { MutexProtocol } from "./mutex/protocol.js";
export { type ExtendPauseOptions, type ExtendPauseOutcome, extendPause } from "./pausing/extend-pause.js";
export type { PermitsState } from "./permits/protocol.js";
export { modeOf, readWriteLockProtocol } from "./read-write-lock/read-write-lock.js";
export { semaphoreProtocol } from "./semaphore/semaphore.js";
export { type RedisClient, storeOf } from "./store-of.js";
export { storeFor } from "./stores/detect.js";
