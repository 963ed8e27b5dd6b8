/**
 * `holdfast/internal`: what the other packages of this repository build on.
 *
 * Unstable: anything here may change or vanish in any version, a patch release included. Programs use `holdfast`.
 *
 * Recipes, integrations, formats of other systems, admin and the contract suites import core, kinds and stores through
 * this one file (and what is public from `index.ts`), so that files inside can be merged and renamed freely. The rule is
 * checked by tests/tidy/imports.ts.
 */

export { barrierProtocol } from "./barrier/protocol.js";
export { looking } from "./condition/protocol.js";
export { isAbortSignal, nativeSignal, onAbort } from "./core/abort.js";
export { acquire, type MakeLease, timeoutError } from "./core/acquire.js";
export { askAsHolder } from "./core/as-holder.js";
export { type Caller, call } from "./core/call.js";
export { cleanUp } from "./core/cleanup.js";
export type { Settled } from "./core/closing.js";
export { Deadline } from "./core/deadline.js";
export { delay } from "./core/delay.js";
export { quote } from "./core/error-texts.js";
export { type CommandEvent, channels, type DeedEvent, publishAcquire, serverOf } from "./core/events.js";
export { hold } from "./core/granting.js";
export { Hold } from "./core/hold.js";
export { idOf } from "./core/hold-id.js";
export { insist } from "./core/insist.js";
export { type Asked, describe, describeClaim, describeHolder } from "./core/inspection.js";
export { anyInternalsOf, type Internals, internalsOf } from "./core/internals.js";
export { Lease } from "./core/lease.js";
export { Lock, type LockParts } from "./core/lock.js";
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
} from "./core/names.js";
export { observe } from "./core/observer.js";
export type { Filled } from "./core/options.js";
export { ACQUIRE_OPTIONS, checkLeaseMs, checkWhole, NONE, type ResolvedOptions, resolve } from "./core/options.js";
export { parseOwner } from "./core/owner.js";
export type { ClientRecord } from "./core/presence.js";
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
export { SHORTEST_CALL_MS } from "./core/questions.js";
export type { Runtime, Timer } from "./core/runtime.js";
export type { Outcome } from "./core/script.js";
export type { Occupant, Session } from "./core/session.js";
export { SharedTimer } from "./core/shared-timer.js";
export type { ServerAddress } from "./core/store.js";
export { publishUngranted, type ToldCall, tellingEnds } from "./core/telling.js";
export { DRIFT_RATE, now } from "./core/validity.js";
export { NOTHING_RUNS, type TimedOut, type WaitEnds } from "./core/wait-ends.js";
export { Waiter } from "./core/waiter.js";
export { latchProtocol } from "./count-down-latch/protocol.js";
export { Election } from "./election/election.js";
export { Leadership } from "./election/leadership.js";
export { type Office, officeOf, offices } from "./election/office.js";
export { ElectionProtocol } from "./election/protocol.js";
export { checkKnown, graceOf } from "./holdfast-options.js";
export { MultiLease, MultiLock } from "./multi-lock/multi-lock.js";
export { MutexProtocol } from "./mutex/protocol.js";
export { type ExtendPauseOptions, type ExtendPauseOutcome, extendPause } from "./pausing/extend-pause.js";
export type { PermitsState } from "./permits/protocol.js";
export { modeOf, readWriteLockProtocol } from "./read-write-lock/read-write-lock.js";
export { semaphoreProtocol } from "./semaphore/semaphore.js";
export { type RedisClient, storeOf } from "./store-of.js";
