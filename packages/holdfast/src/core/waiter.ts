/**
 * Waits for one claim to be granted: sends the request, joins the queue and receives the grant.
 */

import {
  asUncertain,
  ClosedError,
  EvictionError,
  lateGrant,
  PausedError,
  ProtocolError,
  StoreError,
  unknownOutcome,
} from "./errors.js";
import { publishWait } from "./events.js";
import type { InboxCheck, Listening } from "./inbox-check.js";
import type { ResolvedOptions } from "./options.js";
import { Polling, SHORTEST_CALL_MS, UncertainReply } from "./polling.js";
import {
  type AcquireReply,
  type Claim,
  NOTHING_RUNS,
  type NotHeld,
  parsePause,
  type TimedOut,
  type WaitEnds,
  type WaitProtocol,
} from "./protocol.js";
import { cleanUp } from "./release.js";
import { answerInMs } from "./renewal.js";
import type { Occupant, Session } from "./session.js";
import { Deadline, GrantMoment, type Moment, msUntil, now, validUntil } from "./time.js";

const NO_SLOTS: readonly number[] = [];

/**
 * Waits for one claim to be granted: sends the request, joins the queue and receives the grant.
 *
 * Invariants:
 * - A waiter in the queue sends only re-checks.
 * - If a message or a reply is lost, the next re-check makes up for it.
 * - A settled waiter accepts no grant. Its cleanup undoes whatever the server may have done for it.
 */
export class Waiter implements Occupant, Listening {
  readonly #session: Session;
  readonly #protocol: WaitProtocol;
  readonly #options: ResolvedOptions;
  readonly #claim: Claim;
  readonly #deadline: Deadline;
  readonly #ends: WaitEnds;
  /** Created on demand because most acquires send only one request. */
  #polling: Polling | undefined;
  /** Check of the connection that delivers the grant. Set once the claim is in the queue. */
  #check: InboxCheck | undefined;
  /** Number of requests without a reply: at most one, or two if a message shows that the server has run the first. */
  #open = 0;
  #askAgain = false;

  #isSettled = false;
  #isQueued = false;
  #hasQueued = false;
  #pause: string | undefined;
  #hasPublishedWait = false;
  #isConfirming = false;
  /** True if the claim was force-released while a request was open. The reply may predate the release. */
  #isRevoked = false;
  /** Whether the grant arrived as a message, not as a reply. */
  #isHandedOver = false;
  readonly #uncertain = new UncertainReply();
  readonly #reconnects: number;
  readonly #moment: GrantMoment;

  /** Sends nothing until `ask` is called. */
  constructor(session: Session, protocol: WaitProtocol, options: ResolvedOptions, claim: Claim, ends: WaitEnds) {
    this.#session = session;
    this.#protocol = protocol;
    this.#options = options;
    this.#claim = claim;
    this.#ends = ends;
    this.#moment = new GrantMoment(session.runtime);
    this.#reconnects = session.commandReconnects;
    this.#deadline = new Deadline(session.runtime, options, (end) => {
      if (end === "abort") this.#abort();
      else this.#timeUp();
    });
    session.admit(claim, this);
  }

  /** When the wait began. Events identify the call by this object. */
  get startedAt(): Moment {
    return this.#deadline.startedAt;
  }

  /** Owner id of the claim. */
  get owner(): string {
    return this.#claim.owner;
  }

  /** True if the first request ended without a grant: either a reply that the claim is waiting, or no reply. */
  get isAnswered(): boolean {
    return this.#moment.isKnownToWait || this.#uncertain.last !== undefined;
  }

  /** Whether the claim is in the server's queue. */
  get isQueued(): boolean {
    return this.#isQueued;
  }

  /**
   * Whether the claim may wait during a pause. A claim that was already in the queue keeps its place, even if the
   * server has since forgotten it.
   */
  get #waitsThroughPause(): boolean {
    return this.#hasQueued || this.#options.throughPause;
  }

  /** Whether the lock was paused when the server last replied. */
  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  /** The error that the wait would reject with if it ended now. Undefined while the server replies. */
  get failure(): unknown {
    const { last } = this.#uncertain;
    return last === undefined ? undefined : this.#errorFor(last);
  }

  /**
   * Sends the acquire request of the claim. If an earlier request still has no reply, sends this one when that reply
   * arrives.
   *
   * @param why  "at-once" does not wait for the reply to an open request, because that reply may be lost and the grant
   *             could end before the waiter finds out. "recheck" is a periodic request in case a message was lost.
   */
  ask(why?: "at-once" | "recheck"): void {
    if (this.#isSettled) return;
    if (this.#open > 1 || (this.#open === 1 && why !== "at-once")) {
      this.#askAgain = true;
      return;
    }
    this.#open += 1;
    this.#askAgain = false;
    this.#polling?.cancel();
    const protocol = this.#protocol;
    const session = this.#session;
    const { guard } = session;
    const sentAt = this.#moment.sent();
    const enqueue = this.#options.waitMs > 0 && session.canReceiveGrants(protocol);
    const timeoutMs = this.#timeoutMs();
    let reply: Promise<AcquireReply>;
    try {
      reply = guard.isOpen
        ? protocol.acquire(this.#claim, enqueue, timeoutMs, this.#waitsThroughPause)
        : guard.pass(
            protocol.name,
            () => protocol.acquire(this.#claim, enqueue, timeoutMs, this.#waitsThroughPause),
            timeoutMs,
          );
    } catch (error) {
      // A custom store may throw instead of rejecting.
      reply = Promise.reject(error);
    }
    // Uses callbacks, not an async function, because every acquire runs this code.
    reply.then(
      (answer) => {
        this.#open -= 1;
        // With `recheckMs`, other clients release without a message, so finding a grant this way does not mean that a
        // message was lost.
        const isMissed = why === "recheck" && answer.outcome === "granted" && protocol.recheckMs === undefined;
        if (isMissed) this.#check?.missed();
        this.#answered(answer, sentAt);
      },
      (error: unknown) => {
        this.#open -= 1;
        this.#failed(error);
      },
    );
  }

  #timeoutMs(): number {
    const { commandTimeoutMs } = this.#session;
    if (this.#options.waitMs === 0) return commandTimeoutMs;
    return Math.min(commandTimeoutMs, Math.max(this.#deadline.leftMs(), SHORTEST_CALL_MS));
  }

  /**
   * Plans the next request after a "waiting" reply. `restMs` is the remaining time of the current lease, in ms;
   * negative if the lease has no end.
   */
  #queued(restMs: number): void {
    if (this.#askAgain) {
      this.ask();
      return;
    }
    this.#listen();
    if (this.#check?.isDeaf === true) this.#later().poll();
    else this.#later().queued(restMs, this.#session.recheckMs(this.#protocol));
  }

  /** Joins the check of the current connection. In a cluster, the connection changes if the slot moves. */
  #listen(): void {
    const protocol = this.#protocol;
    const check = protocol.asksAgain === true ? undefined : this.#session.inboxCheck(protocol);
    if (check === this.#check) return;
    this.#check?.leave(this);
    this.#check = check;
    check?.join(this);
  }

  /**
   * Continues after a reply that gave the claim no place in the queue. Subscribes and asks again, or polls if the
   * client cannot subscribe.
   */
  #queueOrPoll(): void {
    const session = this.#session;
    const protocol = this.#protocol;
    const goWithout = (): void => {
      if (!this.#isSettled) this.#publishWait();
      this.poll();
    };
    if (this.#askAgain) {
      this.ask();
    } else if (session.clientInbox.unsupported) {
      goWithout();
    } else if (session.canReceiveGrants(protocol)) {
      this.ask();
    } else {
      session.listen(protocol, session.commandTimeoutMs).then(() => this.ask(), goWithout);
      // Keeps the process alive while subscribing, and asks the server again if that takes too long.
      this.#later().in(session.commandTimeoutMs);
    }
  }

  /** Asks again after a delay that grows each time. */
  poll(): void {
    if (!this.#isSettled && this.#open === 0) this.#later().poll();
  }

  /** Schedules the next request to a server that grants nothing for another `restMs`. */
  #quiet(restMs: number): void {
    if (!this.#isSettled && this.#open === 0) this.#later().quiet(restMs);
  }

  #later(): Polling {
    this.#polling ??= new Polling(this.#session.runtime, () => {
      this.#check?.due();
      this.ask("recheck");
    });
    return this.#polling;
  }

  /** Called when a grant arrives in the inbox. */
  granted(token: number, grantedAtUs: number, slots: readonly number[]): void {
    if (this.#isSettled) return;
    const setAt = this.#moment.of(grantedAtUs, this.#claim.handOffMs ?? this.#claim.leaseMs);
    // Ask the server. If the claim still holds the lock, the request also renews the lease.
    if (setAt === undefined) this.ask("at-once");
    else this.#grantByMessage(token, setAt, slots);
  }

  recheck(): void {
    this.ask("at-once");
  }

  revoked(): void {
    this.#isRevoked = this.#isConfirming || this.#open > 0;
    this.ask();
  }

  reconnected(): void {
    this.ask();
  }

  async close(): Promise<void> {
    if (this.#isSettled) return;
    this.#settle();
    this.#ends.failed(new ClosedError(this.#protocol.name));
    await this.#cleanUp();
  }

  #abort(): void {
    if (this.#isSettled) return;
    const cleanedUp = this.abandon();
    const notify = (): void => this.#ends.failed(this.#options.signal?.reason);
    // For kinds that hold nothing, wait for the cleanup. A caller that returned immediately could find its own old
    // claim and mistake it for another caller's.
    if (this.#protocol.holdsNothing === true) void cleanedUp.then(notify);
    else notify();
  }

  /**
   * Ends the wait without notifying the caller. Resolves to true if it is certain that nothing of the claim is left on
   * the server.
   */
  abandon(): Promise<boolean> {
    this.#settle();
    return this.#cleanUp();
  }

  #answered(attempt: AcquireReply, sentAt: Moment): void {
    // The wait was settled in the meantime. The cleanup that started then already accounts for this request.
    if (this.#isSettled) return;
    if (attempt.outcome === "granted" && this.#isOver(sentAt) && this.#protocol.holdsNothing !== true) {
      this.#failed(lateGrant(this.#protocol.name));
      return;
    }
    this.#uncertain.answered();
    if (attempt.outcome === "granted" && this.#isRevoked) {
      // If the claim still holds the lock, the repeated request gets the same reply.
      this.#isRevoked = false;
      this.ask();
      return;
    }
    if (attempt.outcome === "granted") {
      this.#grant(attempt.token, sentAt, attempt.slots ?? NO_SLOTS);
      return;
    }
    const isFirst = !this.#moment.isKnownToWait;
    this.#moment.waits(sentAt, attempt.nowUs);
    this.#isQueued = attempt.outcome === "waiting";
    this.#hasQueued ||= this.#isQueued;
    this.#pause = attempt.pauses?.[0];
    if (this.#options.waitMs === 0) {
      this.#timeUp();
      return;
    }
    const pause = this.#isQueued || this.#waitsThroughPause ? undefined : parsePause(this.#pause ?? "");
    if (pause !== undefined) {
      this.#settle();
      void this.#cleanUp();
      this.#ends.failed(new PausedError(this.#protocol.name, pause));
      return;
    }
    if (isFirst) this.#startDeadline();
    const isLeftToWait = this.#isQueued || this.#protocol.asksAgain === true;
    if (isLeftToWait) this.#publishWait();
    if (isLeftToWait) this.#queued(attempt.restMs);
    else this.#queueOrPoll();
  }

  /** Whether a lease that began at `setAt` has ended. */
  #isOver(setAt: Moment): boolean {
    return msUntil(validUntil(setAt, this.#claim.leaseMs), this.#session.runtime) <= 0;
  }

  /** Publishes the wait event once: when the claim joins the queue, or when it is clear that the claim cannot join. */
  #publishWait(): void {
    if (this.#hasPublishedWait) return;
    this.#hasPublishedWait = true;
    publishWait(this.#protocol, this.#claim, this.#isQueued);
  }

  #startDeadline(): void {
    this.#deadline.start();
    this.#ends.waiting?.();
  }

  #failed(error: unknown): void {
    this.#uncertain.failed(error);
    if (this.#isSettled) return;
    if (error instanceof EvictionError || error instanceof ProtocolError) {
      // The server has replied, so the claim may be in the queue or granted. Clean it up.
      this.#isQueued = true;
      this.#settle();
      void this.#cleanUp().then(() => this.#ends.failed(error));
      return;
    }
    const resumesInMs = error instanceof StoreError ? error.resumesInMs : undefined;
    // The server does reply and will grant again, so this does not count as an ongoing failure.
    if (resumesInMs !== undefined) this.#uncertain.answered();
    const failingMs = this.#uncertain.failingMs(this.#session.runtime.monotonicMs());
    // Give up after a full lease length without a reply: by then, any earlier grant has expired.
    const isPastDeadline = failingMs >= this.#claim.leaseMs || this.#deadline.leftMs() <= 0;
    if (!(error instanceof StoreError) || !error.transient || this.#options.waitMs === 0 || isPastDeadline) {
      this.#settle();
      this.#ends.failed(this.#errorFor(error));
      void this.#cleanUp();
      return;
    }
    this.#uncertain.goesOn(error);
    this.#startDeadline();
    if (resumesInMs !== undefined) this.#quiet(resumesInMs);
    else this.poll();
  }

  #errorFor(error: unknown): unknown {
    return this.#uncertain.errorFor(error, this.#isQueued, this.#protocol.name);
  }

  #grant(token: number, setAt: Moment, slots: readonly number[]): void {
    const { confirm } = this.#protocol;
    if (confirm === undefined) this.#keep(token, setAt, slots);
    else void this.#confirm(confirm, this.#session.commandTimeoutMs, token, slots);
  }

  /**
   * Accepts a grant by message, which lasts only for `handOffMs`. Usually confirms the grant first to get the full
   * lease. Skips that step if the hold is renewed anyway, and either `handOffMs` covers the lease or the last hold of
   * the lock in this process was short.
   */
  #grantByMessage(token: number, setAt: Moment, slots: readonly number[]): void {
    const { confirm, confirmHandOff, confirmsFirst, key } = this.#protocol;
    const { handOffMs } = this.#claim;
    if (confirm !== undefined || confirmHandOff === undefined || handOffMs === undefined) {
      this.#grant(token, setAt, slots);
      return;
    }
    this.#isHandedOver = true;
    const isShort = key !== undefined && this.#session.shortHolds.has(key);
    // If true, the first regular renewal comes before the grant ends.
    const isNoShorter = handOffMs >= this.#claim.leaseMs && this.#options.renew;
    if (isNoShorter || (isShort && confirmsFirst !== true && this.#options.renew)) {
      this.#keep(token, setAt, slots, handOffMs);
    } else {
      const timeoutMs = answerInMs(handOffMs, this.#session.commandTimeoutMs);
      void this.#confirm(confirmHandOff, timeoutMs, token, slots);
    }
  }

  /** Confirms a grant. An unconfirmed grant may end early, or may be lost together with the server that made it. */
  async #confirm(
    confirm: NonNullable<WaitProtocol["confirm"]>,
    timeoutMs: number,
    token: number,
    slots: readonly number[],
  ): Promise<void> {
    if (this.#isConfirming) return;
    this.#isConfirming = true;
    this.#isRevoked = false;
    // A confirmation renews the lease, so the validity of the lease starts here.
    const sentAt = now(this.#session.runtime);
    let outcome: "extended" | NotHeld | undefined;
    let failure: unknown;
    try {
      outcome = await confirm.call(this.#protocol, { claim: this.#claim, token, slots }, timeoutMs);
    } catch (error) {
      failure = error;
    }
    this.#isConfirming = false;
    if (this.#isSettled) return;
    if (outcome === "extended" && this.#isOver(sentAt)) {
      outcome = undefined;
      failure = lateGrant(this.#protocol.name);
    }
    if (outcome === "extended" && !this.#isRevoked) {
      this.#keep(token, sentAt, slots);
    } else if (outcome !== undefined) {
      this.ask();
    } else if (this.#protocol.confirm === undefined) {
      // If the grant is still valid, the next request has the same effect as the confirmation.
      this.#failed(failure);
    } else {
      this.#settle();
      this.#ends.failed(failure);
      void this.#sendAway();
    }
  }

  #keep(token: number, setAt: Moment, slots: readonly number[], provisionalMs?: number): void {
    this.#settle();
    const waitedMs = this.#deadline.waitedMs();
    const mayStillRun = this.#isUnclear() || this.#isTwofold() ? (): boolean => this.#isUnclear() : NOTHING_RUNS;
    const isHandedOver = this.#isHandedOver;
    const call = this.startedAt;
    const claim = this.#claim;
    // Avoids a spread, because every acquire runs this code.
    const granted = { claim, token, slots, setAt, provisionalMs, isHandedOver, waitedMs, call, mayStillRun };
    this.#ends.granted(granted);
  }

  #timeUp(): void {
    if (this.#isSettled) return;
    this.giveUp(this.#options.waitMs).then(this.#ends.timedOut, this.#ends.failed);
  }

  /**
   * Ends a wait that has timed out: inspects the lock, leaves the queue and returns the state of the lock.
   *
   * @param waitMs  length of the wait, in ms, for the error message; if it is 0, the lock is not inspected
   * @throws StoreError  the claim may still be queued or granted on the server; it is cleaned up or expires
   */
  async giveUp(waitMs: number): Promise<TimedOut> {
    this.#settle();
    if (waitMs === 0) return { state: undefined };
    const { failure } = this;
    if (failure !== undefined) {
      void this.#cleanUp();
      throw failure;
    }
    const timeoutMs = Math.min(this.#session.commandTimeoutMs, SHORTEST_CALL_MS);
    // The inspection is sent before `leave` so that it still finds this claim in the queue.
    const { owner } = this.#claim;
    const calledAtMs = this.startedAt.monotonicMs;
    const inspecting = this.#session.inspections.inspect(this.#protocol, { owner, calledAtMs, timeoutMs });
    let refusal: unknown;
    const onRefused = (error: unknown): void => {
      refusal = error;
    };
    if (await this.#cleanUp(timeoutMs, onRefused)) return inspecting;
    if (refusal instanceof StoreError) throw asUncertain(refusal, this.#protocol.name);
    throw unknownOutcome(this.#protocol.name, `the wait of ${waitMs} ms ended before the server replied`);
  }

  /** Resolves to true if it is certain that nothing of the claim is left on the server. */
  async #cleanUp(timeoutMs?: number, onRefused?: (error: unknown) => void): Promise<boolean> {
    if (!this.#isQueued && !this.#isUnclear()) return true;
    return this.#sendAway(timeoutMs, onRefused);
  }

  #sendAway(timeoutMs?: number, onRefused?: (error: unknown) => void): Promise<boolean> {
    return cleanUp(this.#session, this.#protocol, this.#claim, this.#isUnclear(), timeoutMs, onRefused);
  }

  /** Whether a request may still be running. After the waiter is settled, this can only change from true to false. */
  #isUnclear(): boolean {
    return this.#uncertain.isUncertain || this.#open > 0 || this.#isConfirming;
  }

  /** Whether the client may have sent a request twice after a reconnect. The first copy may still be on its way. */
  #isTwofold(): boolean {
    return this.#reconnects !== this.#session.commandReconnects;
  }

  #settle(): void {
    this.#isSettled = true;
    if (this.#isQueued || this.#uncertain.isUncertain || this.#isTwofold()) {
      this.#session.remember(this.#claim, passingOn(this.#session, this.#protocol, this.#claim, this.#isUnclear()));
    }
    this.#deadline.stop();
    this.#polling?.cancel();
    this.#check?.leave(this);
    this.#session.dismiss(this.#claim, this);
  }
}

/**
 * Returns a function that releases a late grant. The function is created outside the waiter, so that it does not keep
 * the waiter and its caller alive.
 */
function passingOn(session: Session, protocol: WaitProtocol, claim: Claim, isUncertain: boolean): () => void {
  return () => void cleanUp(session, protocol, claim, isUncertain);
}
