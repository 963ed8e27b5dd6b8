/** The operations that create a lease: acquire, tryAcquire, run and adopt. All lock kinds with leases share them. */

import type { OverReason } from "./error-messages.js";
import { AcquireTimeoutError, LeaseLostError, lateGrant, PausedError, StoreError } from "./errors.js";
import { type PublishedCall, publishAcquire, publishingEnds, publishUngranted } from "./events.js";
import { Hold, hold } from "./hold.js";
import { firstHolder } from "./inspection.js";
import type { ExportedLease, Lease } from "./lease.js";
import type { LocalQueues } from "./local-queue.js";
import { NONE, OF_RUN, type ResolvedOptions, type RunOptions } from "./options.js";
import type { Grant, LockProtocol, NotHeld, WaitProtocol } from "./protocol.js";
import { type Granted, NOTHING_RUNS, parseOwner, standingPause, type TimedOut } from "./protocol.js";
import { cleanUp } from "./release.js";
import type { Session } from "./session.js";
import { type Moment, msUntil, now, validUntil } from "./time.js";
import { Waiter } from "./waiter.js";

/** Creates a kind's lease from a hold. */
export type MakeLease<Held extends Lease> = (hold: Hold) => Held;

/**
 * Acquires the lock. Waits at most `waitMs` for it.
 *
 * @param localQueues  the queues in which callers of this process share claims; not used if `fairness` is "strict"
 * @throws AcquireTimeoutError, PausedError, StoreError, ClosedError, signal.reason
 */
export async function acquire<Held extends Lease>(
  session: Session,
  protocol: LockProtocol,
  options: ResolvedOptions,
  make: MakeLease<Held>,
  localQueues?: LocalQueues,
): Promise<Held> {
  // A call that does not wait never joins the local queue.
  if (localQueues === undefined || options.fairness === "strict" || options.waitMs <= 0) {
    return await acquireAlone(session, protocol, options, make);
  }
  let timedOut: TimedOut | undefined;
  let resolve!: (held: Held | undefined) => void;
  let reject!: (error: unknown) => void;
  const ended = new Promise<Held | undefined>((...both) => {
    [resolve, reject] = both;
  });
  localQueues.of(protocol, options).join(protocol, options, {
    held: (granted) => resolve(make(granted)),
    timedOut: (end) => {
      timedOut = end;
      resolve(undefined);
    },
    failed: reject,
  });
  const held = await ended;
  if (held !== undefined) return held;
  // Create the error here, not in a callback: the caller awaits this function, so the stack includes the caller's line.
  throw await timeoutError(session, protocol, options, timedOut ?? { state: undefined }, 0);
}

/** Like `acquire`, but with a claim that no other caller shares. */
async function acquireAlone<Held extends Lease>(
  session: Session,
  protocol: LockProtocol,
  options: ResolvedOptions,
  make: MakeLease<Held>,
): Promise<Held> {
  const calledAtMs = options.waitMs > 0 ? 0 : session.runtime.monotonicMs();
  const end = await holdAlone(session, protocol, options);
  if (end instanceof Hold) return make(end);
  throw await timeoutError(session, protocol, options, end, calledAtMs);
}

function holdAlone(session: Session, protocol: LockProtocol, options: ResolvedOptions): Promise<Hold | TimedOut> {
  const ask = (): Promise<Hold | TimedOut> =>
    waitForGrant(session, protocol, options, (granted) => hold(session, protocol, granted, options));
  // First release the lock's retained claim if it is idle, because that claim would make this call wait or fail.
  return session.retained?.get(protocol.key)?.end().then(ask) ?? ask();
}

/**
 * Returns the error for a wait that timed out. The error names the holder, or who paused the lock, if that can be read
 * quickly. Never rejects.
 *
 * @param calledAtMs  when the call began, in ms on the monotonic clock; used only if the call did not wait
 */
export async function timeoutError(
  session: Session,
  protocol: WaitProtocol,
  { waitMs, throughPause }: ResolvedOptions,
  end: TimedOut,
  calledAtMs: number,
): Promise<AcquireTimeoutError | PausedError> {
  // A wait ends with an inspection. A call that did not wait has none yet, so inspect the lock now.
  const timeoutMs = session.commandTimeoutMs;
  const { state, unseen } = waitMs > 0 ? end : await session.inspections.inspect(protocol, { calledAtMs, timeoutMs });
  const pause = standingPause(session, state);
  if (pause !== undefined && !throughPause) return new PausedError(protocol.name, pause);
  const holder = await firstHolder(session, state);
  const isOwn = holder !== undefined && session.isOwn(holder.owner);
  return new AcquireTimeoutError(protocol.name, {
    waitMs,
    holder,
    isOwn,
    waitersAhead: state?.ahead ?? (state?.isPlaceUnknown === true ? undefined : state?.waiterCount),
    pause,
    cause: unseen,
  });
}

/** Makes one attempt. Returns null if the lock is taken. @throws StoreError, ClosedError */
export async function tryAcquire<Held extends Lease>(
  session: Session,
  protocol: LockProtocol,
  options: ResolvedOptions,
  make: MakeLease<Held>,
): Promise<Held | null> {
  const end = await holdAlone(session, protocol, { ...options, waitMs: 0 });
  return end instanceof Hold ? make(end) : null;
}

/**
 * Acquires the lock, runs `work` and releases the lock. An error from `work` takes precedence over an error from the
 * release. If the outcome of the release is unknown, `run` still succeeds, provided that `work` ended within the lease:
 * no other caller held the lock in the meantime, and the lease expires by itself. See docs/adr/009, and docs/adr/144
 * for releases in the background.
 *
 * @param acquireLease  checks the options, including those that only `run` has, and acquires the lock
 */
export async function run<Held extends Lease, Result, Options extends RunOptions>(
  session: Session,
  work: (lease: Held) => Result | Promise<Result>,
  options: Options,
  acquireLease: (options: Options) => Promise<Held>,
): Promise<Result> {
  if (typeof work !== "function") throw new TypeError(`work must be a function; got ${typeof work}`);
  const isGiven = options !== NONE && options !== null && typeof options === "object";
  const held = await acquireLease(isGiven ? { ...options, [OF_RUN]: true } : options);
  const { release, onReleaseError } = options;
  const isAwaited = release !== "background";
  const report = (error: unknown): void => {
    // The callback may be an async function, although its type does not say so. Do not wait for it; ignore its errors.
    new Promise((resolve) => resolve(onReleaseError?.(error))).catch(() => {});
  };
  let result: Result;
  try {
    result = await work(held);
  } catch (error) {
    const ended = held.release().catch(report);
    if (isAwaited) await ended;
    else session.inBackground(ended);
    throw error;
  }
  // If the lease is over, only the server knows whether the work overlapped with another holder's, so await its reply.
  const wasHeld = held.validForMs() > 0;
  const released = held.release();
  if (isAwaited || !wasHeld) {
    await released.catch((error: unknown) => {
      if (!wasHeld || error instanceof LeaseLostError) throw error;
      report(error);
    });
  } else {
    session.inBackground(released.catch(report));
  }
  return result;
}

/** Continues a lease that another process exported. @throws LeaseLostError, StoreError, ClosedError */
export async function adopt<Held extends Lease>(
  session: Session,
  protocol: LockProtocol,
  exported: ExportedLease,
  make: MakeLease<Held>,
): Promise<Held> {
  const { owner, leaseMs, renew, maxHoldMs = Infinity, slots = [] } = exported;
  const token = exported.reservedTo ?? exported.token;
  const { amount = 1, label = "" } = parseOwner(owner) ?? {};
  const claim = session.newClaim(protocol.name, leaseMs, amount, label);
  const grant: Grant = { claim, token, slots };
  const { outcome, setAt } = await adoptSurely(session, protocol, owner, grant);
  if (outcome !== "adopted") throw await adoptError(session, protocol, exported, grant, outcome);
  try {
    // Do not adopt during a close: it has already asked the existing holders to end their work. It would not ask this
    // new holder, and would release its lease while the work still runs.
    session.assertOpen(protocol.name);
  } catch (error) {
    void cleanUp(session, protocol, claim, false);
    throw error;
  }
  // The lease keeps its own token, which may be lower than the last token that its claim reserved.
  const kept = { token: exported.token, setAt, options: { renew, maxHoldMs }, mayStillRun: NOTHING_RUNS };
  return make(new Hold(session, protocol, grant, kept));
}

/**
 * Returns the error for a lease that cannot be adopted. Inspects the lock, because the reply does not say whether the
 * lease was already adopted. Never rejects.
 */
async function adoptError(
  session: Session,
  protocol: LockProtocol,
  { owner, token }: ExportedLease,
  { claim, token: last, slots }: Grant,
  outcome: NotHeld,
): Promise<LeaseLostError> {
  const state = await protocol.inspect(undefined, session.commandTimeoutMs).catch(() => undefined);
  // An adopter has the same token. A mutex shows the first token of a claim, which may have reserved several.
  const tokens: unknown[] = [last, slots.length > 0 ? last : last - claim.amount + 1];
  // A client of another library takes the lock without a token, so the token on record is not its own.
  const isAdopted = state?.holders.some((held) => tokens.includes(held.token) && parseOwner(held.owner));
  let reason: OverReason = "server-lost";
  let why = "the server does not have it under this prefix";
  if (isAdopted) {
    reason = "handed-over";
    why = "it was already adopted and is still held";
  } else if (outcome !== "forgotten") {
    reason = "expired";
    // An adopter that upgraded a read lease has a later token, which looks like a grant to another holder.
    const granted = outcome === "unclaimed" ? "but the lock was not" : "so the lock may have been";
    why = `it was adopted, released or not renewed in time, ${granted} granted to another holder since`;
  }
  return new LeaseLostError(protocol.name, { reason, token, owner, why });
}

/**
 * Adopts the lease. If the reply is lost, retries once with the same claim, because the first attempt may have run.
 *
 * @throws StoreError
 */
async function adoptSurely(
  session: Session,
  protocol: LockProtocol,
  from: string,
  to: Grant,
): Promise<{ outcome: "adopted" | NotHeld; setAt: Moment }> {
  for (let isRepeated = false; ; isRepeated = true) {
    let setAt = now(session.runtime);
    try {
      let outcome = await protocol.adopt(from, to, session.commandTimeoutMs);
      if (outcome === "adopted" && session.store.confirmsGrants === true) {
        setAt = now(session.runtime);
        const confirmed = await protocol.extend(to, to.claim.leaseMs, session.commandTimeoutMs);
        if (confirmed !== "extended") outcome = confirmed;
      }
      if (outcome === "adopted" && msUntil(validUntil(setAt, to.claim.leaseMs), session.runtime) <= 0) {
        throw lateGrant(protocol.name);
      }
      return { outcome, setAt };
    } catch (error) {
      if (isRepeated || !(error instanceof StoreError) || !error.transient) {
        void cleanUp(session, protocol, to.claim, true);
        throw error;
      }
    }
  }
}

/**
 * Creates a claim and waits until it is granted or its deadline passes.
 *
 * @param keep  converts the grant to the value that the promise resolves to. Called in the same turn in which the grant
 *              arrives, so that the hold already exists if a force-release or a close follows. If it throws, the grant
 *              is released.
 * @throws StoreError, EvictionError, ClosedError, signal.reason, any error from `keep`
 */
export function waitForGrant<Kept = Granted>(
  session: Session,
  protocol: WaitProtocol,
  options: ResolvedOptions,
  keep: (granted: Granted) => Kept = (granted) => granted as Kept,
): Promise<Kept | TimedOut> {
  return new Promise((resolve, reject) => {
    options.signal?.throwIfAborted();
    const isHandedOff = protocol.confirmHandOff !== undefined;
    const claim = session.newClaim(protocol.name, options.leaseMs, options.amount, options.label, isHandedOff);
    const { runtime } = session;
    const call: PublishedCall = { protocol, options, runtime, claim: () => claim, startedAt: () => waiter.startedAt };
    const ends = publishingEnds({ timedOut: resolve, failed: reject }, call);
    const waiter = new Waiter(session, protocol, options, claim, {
      ...ends,
      granted(granted) {
        try {
          resolve(keep(granted));
          if (protocol.holdsNothing === true) publishUngranted(call, "passed");
        } catch (error) {
          void cleanUp(session, protocol, granted.claim, granted.mayStillRun());
          ends.failed(error);
        }
      },
    });
    waiter.ask();
    publishAcquire(protocol, claim, options, waiter.startedAt, session.store);
  });
}
