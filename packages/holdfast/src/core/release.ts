/**
 * Releases by the holder, and the cleanup of claims that no caller uses anymore.
 */
import { asUncertain, StoreError } from "./errors.js";
import type { Ended } from "./lease.js";
import type { Claim, Grant, LockProtocol, WaitProtocol } from "./protocol.js";
import type { Timer } from "./runtime.js";
import type { Occupant, Session } from "./session.js";

// --- Releases. The lock goes to the next waiter even if requests or replies are lost.

/** A hold to release. */
export interface Given {
  readonly session: Session;
  readonly protocol: LockProtocol;
  /** The grant, with the token that the server compares. */
  readonly grant: Grant;
  /** The claim, with the longest lease that it ever had. */
  readonly claim: Claim;
  /**
   * True if the lock has not been contended, and the claim was granted in the reply to its only request. In that case,
   * no copy of that request can grant the claim again.
   */
  readonly isPlain: boolean;
  /**
   * Returns whether a request of the claim may still be under way. If so, its effect must be undone when it arrives.
   */
  readonly mayStillRun: () => boolean;
  /** Restores a valid lease that was lost in a failover. Resolves to whether it was restored. @throws StoreError */
  readonly reclaim: () => Promise<boolean>;
}

/**
 * Releases a lease that is still valid, and retries for about two command timeouts. The work under the lease is done,
 * so the next holder cannot overlap with it, no matter how late the replies are. That is why a "not held" reply counts
 * as a release if an earlier copy of the request may have run.
 *
 * @throws StoreError  no reply in time, or the server refused; the cleanup continues in the background
 */
export async function giveBack({
  session,
  protocol,
  grant,
  claim,
  isPlain,
  mayStillRun,
  reclaim,
}: Given): Promise<Ended> {
  const { commandTimeoutMs, runtime } = session;
  const reconnects = session.commandReconnects;
  let isPutBack = false;
  // `releaseFree` does not compare the token, so it is used only for a claim that cannot have been granted twice. It is
  // tried only once, because a second try would not find the lock that the first one deleted.
  let releaseFree = isPlain && !mayStillRun() ? protocol.releaseFree : undefined;
  let mayHaveRun = false;
  let settle: (() => void) | undefined;
  try {
    return await insist(session, async (isRetry) => {
      const sentAtMs = runtime.monotonicMs();
      if (releaseFree !== undefined) {
        // A second request may follow, so `close` must wait for both.
        session.inBackground(new Promise<void>((resolve) => (settle = resolve)));
        const sent = releaseFree(grant, commandTimeoutMs);
        releaseFree = undefined;
        const outcome = await sent;
        if (outcome === "released") return outcome;
        mayHaveRun = outcome === "waited";
      }
      mayHaveRun ||= isRetry || reconnects !== session.commandReconnects;
      // Both requests of an attempt share one timeout. The second gets at least a tenth of it, in case the process
      // stalled.
      const leftMs = Math.ceil(Math.max(commandTimeoutMs / 10, commandTimeoutMs + sentAtMs - runtime.monotonicMs()));
      let ended = await protocol.release(grant, leftMs, mayHaveRun);
      // If the lease can be restored, no other claim was granted in between, so release the lease again.
      if (ended !== "released" && !isRetry && !isPutBack && (await isReclaimed(reclaim))) {
        isPutBack = true;
        ended = await protocol.release(grant, commandTimeoutMs);
      }
      // A request that arrives later would acquire the lock although no caller wants it, so a cleanup releases it.
      if (mayStillRun()) void cleanUp(session, protocol, claim, true);
      mayHaveRun ||= reconnects !== session.commandReconnects;
      return mayHaveRun && ended !== "forgotten" ? "released" : ended;
    });
  } catch (error) {
    void cleanUp(session, protocol, claim, true);
    throw mayHaveRun && error instanceof StoreError ? asUncertain(error, error.lockName) : error;
  } finally {
    settle?.();
  }
}

/**
 * Returns whether the lease was restored. A missing reply counts as false: the reply to the release stays valid, and
 * `mayStillRun` causes a cleanup in case the request restores the lease later.
 */
async function isReclaimed(reclaim: () => Promise<boolean>): Promise<boolean> {
  try {
    return await reclaim();
  } catch (error) {
    if (error instanceof StoreError) return false;
    throw error;
  }
}

/**
 * Releases a lease that has expired according to this process's clocks. Other claims may have been granted since, and a
 * late copy of a request of this claim may even have acquired the lock again. Only the token shows whether that
 * happened. So this function sends a renewal, which compares the token, and then cleans up.
 *
 * @throws StoreError  no reply in time, or the server refused
 */
export async function giveBackLate({ session, protocol, grant, claim, mayStillRun }: Given): Promise<Ended> {
  const { commandTimeoutMs } = session;
  try {
    const outcome = await insist(session, () => protocol.extend(grant, grant.claim.leaseMs, commandTimeoutMs));
    return outcome === "extended" ? "released" : outcome;
  } finally {
    // The server may still have a hold for this claim. No caller uses it, so it must end.
    await cleanUp(session, protocol, claim, mayStillRun());
  }
}

// --- Cleanup: ends a claim for good, even if it is unknown what the server has done for it.
//
// A request whose reply was lost may still be on its way, and may queue or acquire when it arrives. So while such a
// request may exist, the cleanup repeats `leave`. Once the server has replied, the cleanup stops after the length of
// the lease or a minute, whichever is shorter. If the server never replies, or if a place in the queue can block other
// waiters after its client is gone (`keepsPlaces`), the cleanup stops after the longer of the two. If a place remains
// after that and is granted, the session passes the grant on (`Session.remember`).

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 10_000;
/** Longest time that a request without a reply can plausibly be under way, in ms. */
const STRAGGLER_MS = 60_000;

/**
 * Removes a claim from the queue, or releases it if it was granted in the meantime.
 *
 * @param isUncertain  whether a request for this claim may still be under way
 * @param timeoutMs    timeout of the first attempt, in ms; by default the command timeout
 * @param onRefused    called with the error of the first attempt if a retry would fail in the same way
 * @returns whether the server replied to the first attempt; further attempts run in the background. Never rejects.
 */
export function cleanUp(
  session: Session,
  protocol: WaitProtocol,
  claim: Claim,
  isUncertain: boolean,
  timeoutMs?: number,
  onRefused?: (error: unknown) => void,
): Promise<boolean> {
  return new Cleanup(session, protocol, claim, isUncertain).leave(timeoutMs, onRefused);
}

class Cleanup implements Occupant {
  /** False, because a cleanup may continue in the background while a closing Holdfast waits for its holders. */
  readonly waits = false;
  readonly #session: Session;
  readonly #protocol: WaitProtocol;
  readonly #claim: Claim;
  readonly #startedAtMs: number;
  #isUncertain: boolean;
  #isAnswered = false;
  /**
   * Whether a retry is unlikely to help, for example because the key has the wrong type. If so, the cleanup stops as
   * early as it would after a reply.
   */
  #isHopeless = false;
  #isOver = false;
  /**
   * Whether a request was sent after this Holdfast began to close. If so, `close` does not spend another timeout on
   * this claim.
   */
  #isLast = false;
  #pauseMs = FIRST_PAUSE_MS;
  #pause: Timer | undefined;

  constructor(session: Session, protocol: WaitProtocol, claim: Claim, isUncertain: boolean) {
    this.#session = session;
    this.#protocol = protocol;
    this.#claim = claim;
    this.#isUncertain = isUncertain;
    this.#startedAtMs = session.runtime.monotonicMs();
    session.admit(claim, this);
  }

  get #lock(): string {
    return this.#protocol.key ?? this.#protocol.name;
  }

  async leave(timeoutMs = this.#session.commandTimeoutMs, onRefused?: (error: unknown) => void): Promise<boolean> {
    this.#pause?.cancel();
    this.#isLast ||= this.#session.isClosing;
    let isAnswered = true;
    try {
      await this.#session.cleanups.send(this.#lock, () => this.#protocol.leave(this.#claim, timeoutMs));
      this.#isAnswered = true;
    } catch (error) {
      // Without a reply, the claim may still be in the queue, or hold the lock.
      isAnswered = false;
      this.#isUncertain = true;
      this.#isHopeless = error instanceof StoreError && !error.transient;
      if (this.#isHopeless) onRefused?.(error);
    }
    this.#goOn();
    return isAnswered;
  }

  /** Passes the grant on, because no caller uses it. */
  granted(): void {
    if (!this.#isOver) void this.leave();
  }

  recheck(): void {}

  revoked(): void {}

  reconnected(): void {
    if (this.#isUncertain && !this.#isOver) void this.leave();
  }

  async close(): Promise<void> {
    if (this.#isOver) return;
    if (!this.#isLast) await this.leave();
    this.#end();
  }

  #goOn(): void {
    if (this.#isOver) return;
    const passedMs = this.#session.runtime.monotonicMs() - this.#startedAtMs;
    const { leaseMs } = this.#claim;
    // Without a reply, the claim may be in the queue, and its place outlasts the lease. So go on for a minute or more.
    const isSettled = this.#isAnswered || this.#isHopeless;
    const enoughMs =
      isSettled && this.#protocol.keepsPlaces !== true
        ? Math.min(leaseMs, STRAGGLER_MS)
        : Math.max(leaseMs, STRAGGLER_MS);
    if ((this.#isAnswered && !this.#isUncertain) || passedMs >= enoughMs) {
      this.#end();
      return;
    }
    this.#pause?.cancel();
    this.#pause = this.#session.runtime.startTimer(() => void this.leave(), this.#pauseMs, false);
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }

  #end(): void {
    this.#isOver = true;
    this.#pause?.cancel();
    this.#session.dismiss(this.#claim, this);
  }
}

const INSIST_PAUSE_MS = 50;

/**
 * Sends a request until the server replies, for about two command timeouts. The request must be idempotent.
 *
 * @param send  sends the request; its argument says whether an earlier attempt may have run
 * @throws StoreError  no reply in that time, or the server refused; `mayHaveRun` is true if any attempt may have run
 */
export async function insist<Answer>(
  session: Pick<Session, "runtime" | "commandTimeoutMs">,
  send: (mayHaveRun: boolean) => Promise<Answer>,
): Promise<Answer> {
  const { runtime, commandTimeoutMs } = session;
  const stopAtMs = runtime.monotonicMs() + commandTimeoutMs * 2;
  for (let mayHaveRun = false; ; ) {
    try {
      return await send(mayHaveRun);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      mayHaveRun ||= error.mayHaveRun;
      if (!error.transient || runtime.monotonicMs() >= stopAtMs) {
        throw mayHaveRun ? asUncertain(error, error.lockName) : error;
      }
      await new Promise<void>((resume) => runtime.startTimer(resume, INSIST_PAUSE_MS, true));
    }
  }
}
