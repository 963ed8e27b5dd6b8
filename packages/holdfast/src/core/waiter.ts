/**
 * One claim on its way to a grant: ask, queue, and be notified.
 */

import { ClosedError, EvictionError, PausedError, ProtocolError, StoreError } from "./errors.js";
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
 * One claim on its way to a grant: ask, queue, and be told.
 *
 * Invariants: a waiter that stands in the queue sends nothing but its re-checks; whatever message or reply is
 * lost, the next re-check finds out; once settled it takes no grant, and what the server may have done for it
 * is undone by its cleanup.
 */
export class Waiter implements Occupant, Listening {
  readonly #session: Session;
  readonly #protocol: WaitProtocol;
  readonly #options: ResolvedOptions;
  readonly #claim: Claim;
  readonly #deadline: Deadline;
  readonly #ends: WaitEnds;
  /** Made on demand: most acquires ask once. */
  #polling: Polling | undefined;
  /** Of the connection on which it is notified, once it stands in the queue. */
  #check: InboxCheck | undefined;
  /** Requests without an answer: one, or two after a message that shows that the server has run the first. */
  #open = 0;
  #askAgain = false;

  #isSettled = false;
  #isQueued = false;
  #hasQueued = false;
  #pause: string | undefined;
  #hasTold = false;
  #isConfirming = false;
  /** Somebody released the claim by force while an answer was on its way, which may be older than that. */
  #isRevoked = false;
  /** Whether the grant came by message. */
  #isHandedOver = false;
  readonly #uncertain = new UncertainReply();
  readonly #reconnects: number;
  readonly #moment: GrantMoment;

  /** It sends nothing before `ask`. */
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

  /** When it began to wait, which is what events name the call by. */
  get startedAt(): Moment {
    return this.#deadline.startedAt;
  }

  /** Id of the claim, as the server and `inspect` name it. */
  get owner(): string {
    return this.#claim.owner;
  }

  /** Whether it is known by now that it will take a while: the server has said so, or has not answered in time. */
  get isAnswered(): boolean {
    return this.#moment.isKnownToWait || this.#uncertain.last !== undefined;
  }

  /** Whether it stands in the server's queue. */
  get isQueued(): boolean {
    return this.#isQueued;
  }

  /** Who stood in the queue before a pause began keeps its place, also where the server has forgotten it since. */
  get #waitsThroughPause(): boolean {
    return this.#hasQueued || this.#options.throughPause;
  }

  /** Whether the server had paused the lock when it last answered. */
  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  /** What the wait would end with if it ended now: the failure that goes on, or undefined while the server answers. */
  get failure(): unknown {
    const { last } = this.#uncertain;
    return last === undefined ? undefined : this.#told(last);
  }

  /**
   * Sends the request of the claim; or, while one is without an answer, sends it again as soon as that has come.
   *
   * @param why  "at-once" does not wait for an answer that may be lost, since what the server tells of may be over before that
   *             is known; "recheck" is asked without a reason, because a message may be lost
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
    const enqueue = this.#options.waitMs > 0 && session.canBeTold(protocol);
    const timeoutMs = this.#timeoutMs();
    const reply = guard.isOpen
      ? protocol.acquire(this.#claim, enqueue, timeoutMs, this.#waitsThroughPause)
      : guard.pass(
          protocol.name,
          () => protocol.acquire(this.#claim, enqueue, timeoutMs, this.#waitsThroughPause),
          timeoutMs,
        );
    // On the path of every acquire, hence callbacks in place of an async function.
    reply.then(
      (answer) => {
        this.#open -= 1;
        // Where other clients release without a message, this is how a grant is found.
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

  /** What follows on the answer "you wait": `restMs` is left of the present lease, or negative if it has no end. */
  #queued(restMs: number): void {
    if (this.#askAgain) {
      this.ask();
      return;
    }
    this.#listen();
    if (this.#check?.isDeaf === true) this.#later().poll();
    else this.#later().queued(restMs, this.#session.recheckMs(this.#protocol));
  }

  /** The connection may be another one than before: a slot of a cluster moves. */
  #listen(): void {
    const protocol = this.#protocol;
    const check = protocol.asksAgain === true ? undefined : this.#session.inboxCheck(protocol);
    if (check === this.#check) return;
    this.#check?.leave(this);
    this.#check = check;
    check?.join(this);
  }

  /** What follows on an answer without a place in the queue: it listens first, or asks now and then if it never can. */
  #queueOrPoll(): void {
    const session = this.#session;
    const protocol = this.#protocol;
    const goWithout = (): void => {
      if (!this.#isSettled) this.#tellWait();
      this.poll();
    };
    if (this.#askAgain) {
      this.ask();
    } else if (session.mailbox.unsupported) {
      goWithout();
    } else if (session.canBeTold(protocol)) {
      this.ask();
    } else {
      session.listen(protocol, session.commandTimeoutMs).then(() => this.ask(), goWithout);
      // Keeps the process alive meanwhile, and asks if that takes long.
      this.#later().in(session.commandTimeoutMs);
    }
  }

  /** Asks after a pause, longer each time. */
  poll(): void {
    if (!this.#isSettled && this.#open === 0) this.#later().poll();
  }

  /** The server may not grant for `restMs` more. */
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

  /** A grant was pushed to the inbox. */
  granted(token: number, grantedAtUs: number, slots: readonly number[]): void {
    if (this.#isSettled) return;
    const setAt = this.#moment.of(grantedAtUs, this.#claim.handOffMs ?? this.#claim.leaseMs);
    // The server knows, and the same question begins the lease anew if it is still ours.
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
    await this.#cleanUp(this.#session.commandTimeoutMs);
  }

  #abort(): void {
    if (this.#isSettled) return;
    const cleanedUp = this.abandon();
    const tell = (): void => this.#ends.failed(this.#options.signal?.reason);
    // Where nothing is held, who goes back at once could meet its own former claim, and take it for somebody else's.
    if (this.#protocol.holdsNothing === true) void cleanedUp.then(tell);
    else tell();
  }

  /** Ends the wait without a word to whoever made it. Resolves to whether it is certain that nothing is left of it. */
  abandon(): Promise<boolean> {
    this.#settle();
    return this.#cleanUp(this.#session.commandTimeoutMs);
  }

  #answered(attempt: AcquireReply, sentAt: Moment): void {
    // Settled meanwhile: the cleanup that began then knows that this request was under way.
    if (this.#isSettled) return;
    if (attempt.outcome === "granted" && this.#isOver(sentAt) && this.#protocol.holdsNothing !== true) {
      this.#failed(this.#tooLate("the answer came when the lease that it granted was over"));
      return;
    }
    this.#uncertain.answered();
    if (attempt.outcome === "granted" && this.#isRevoked) {
      // If it still holds, the same question has the same answer.
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
      void this.#cleanUp(this.#session.commandTimeoutMs);
      this.#ends.failed(new PausedError(this.#protocol.name, pause));
      return;
    }
    if (isFirst) this.#startDeadline();
    const isLeftToWait = this.#isQueued || this.#protocol.asksAgain === true;
    if (isLeftToWait) this.#tellWait();
    if (isLeftToWait) this.#queued(attempt.restMs);
    else this.#queueOrPoll();
  }

  /** Whether a lease that began then is over by now. */
  #isOver(setAt: Moment): boolean {
    return msUntil(validUntil(setAt, this.#claim.leaseMs), this.#session.runtime) <= 0;
  }

  #tooLate(why: string): StoreError {
    return new StoreError(this.#protocol.name, { mayHaveRun: true, transient: true, cause: new Error(why) });
  }

  /** Once: when it stands in the queue, or when it is clear that it has to do without. */
  #tellWait(): void {
    if (this.#hasTold) return;
    this.#hasTold = true;
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
      // The server has answered, with a place in the queue or a grant.
      this.#isQueued = true;
      this.#settle();
      void this.#cleanUp(this.#session.commandTimeoutMs).then(() => this.#ends.failed(error));
      return;
    }
    const resumesInMs = error instanceof StoreError ? error.resumesInMs : undefined;
    // It does answer, and will grant: that is no failure which goes on.
    if (resumesInMs !== undefined) this.#uncertain.answered();
    const failingMs = this.#uncertain.failingMs(this.#session.runtime.monotonicMs());
    // After a whole lease without an answer nothing that was granted before can still be ours.
    const isPastDeadline = failingMs >= this.#claim.leaseMs || this.#deadline.leftMs() <= 0;
    if (!(error instanceof StoreError) || !error.transient || this.#options.waitMs === 0 || isPastDeadline) {
      this.#settle();
      this.#ends.failed(this.#told(error));
      void this.#cleanUp(this.#session.commandTimeoutMs);
      return;
    }
    this.#uncertain.goesOn(error);
    this.#startDeadline();
    if (resumesInMs !== undefined) this.#quiet(resumesInMs);
    else this.poll();
  }

  #told(error: unknown): unknown {
    return this.#uncertain.told(error, this.#isQueued, this.#protocol.name);
  }

  #grant(token: number, setAt: Moment, slots: readonly number[]): void {
    const { confirm } = this.#protocol;
    if (confirm === undefined) this.#keep(token, setAt, slots);
    else void this.#confirm(confirm, this.#session.commandTimeoutMs, token, slots);
  }

  /** The server has granted only `handOffMs`. Where the work may be long, it gets the whole lease before it begins. */
  #grantByMessage(token: number, setAt: Moment, slots: readonly number[]): void {
    const { confirm, confirmHandOff, confirmsFirst, key } = this.#protocol;
    const { handOffMs } = this.#claim;
    if (confirm !== undefined || confirmHandOff === undefined || handOffMs === undefined) {
      this.#grant(token, setAt, slots);
      return;
    }
    this.#isHandedOver = true;
    const isShort = key !== undefined && this.#session.shortHolds.has(key);
    // Renewed anyway before that is over.
    const isNoShorter = handOffMs >= this.#claim.leaseMs && this.#options.renew;
    if (isNoShorter || (isShort && confirmsFirst !== true && this.#options.renew)) {
      this.#keep(token, setAt, slots, handOffMs);
    } else {
      const timeoutMs = answerInMs(handOffMs, this.#session.commandTimeoutMs);
      void this.#confirm(confirmHandOff, timeoutMs, token, slots);
    }
  }

  /** What was granted may not last, or may be lost with the server that granted it, until it is confirmed. */
  async #confirm(
    confirm: NonNullable<WaitProtocol["confirm"]>,
    timeoutMs: number,
    token: number,
    slots: readonly number[],
  ): Promise<void> {
    if (this.#isConfirming) return;
    this.#isConfirming = true;
    this.#isRevoked = false;
    // A confirmation begins the lease anew.
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
      failure = this.#tooLate("the grant was confirmed when its lease was over");
    }
    if (outcome === "extended" && !this.#isRevoked) {
      this.#keep(token, sentAt, slots);
    } else if (outcome !== undefined) {
      this.ask();
    } else if (this.#protocol.confirm === undefined) {
      // The next question has the same effect as the confirmation, if the grant still stands.
      this.#failed(failure);
    } else {
      this.#settle();
      this.#ends.failed(failure);
      void this.#sendAway(this.#session.commandTimeoutMs);
    }
  }

  #keep(token: number, setAt: Moment, slots: readonly number[], provisionalMs?: number): void {
    this.#settle();
    const waitedMs = this.#deadline.waitedMs();
    const mayStillRun = this.#isUnclear() ? (): boolean => this.#isUnclear() : NOTHING_RUNS;
    const isHandedOver = this.#isHandedOver;
    const call = this.startedAt;
    const claim = this.#claim;
    // No spread: this is on the path of every acquire.
    const granted = { claim, token, slots, setAt, provisionalMs, isHandedOver, waitedMs, call, mayStillRun };
    this.#ends.granted(granted);
  }

  #timeUp(): void {
    if (this.#isSettled) return;
    this.giveUp(this.#options.waitMs).then(this.#ends.timedOut, this.#ends.failed);
  }

  /**
   * The wait is over: look who has it, leave, and say so; unless it cannot be known that nothing is held.
   *
   * @param waitMs  how long the wait was, for the message
   * @throws StoreError  something may be left of it, which goes by itself
   */
  async giveUp(waitMs: number): Promise<TimedOut> {
    this.#settle();
    if (waitMs === 0) return { state: undefined };
    const { failure } = this;
    if (failure !== undefined) {
      void this.#cleanUp(this.#session.commandTimeoutMs);
      throw failure;
    }
    const timeoutMs = Math.min(this.#session.commandTimeoutMs, SHORTEST_CALL_MS);
    // Sent before `leave`, so that it still sees this claim in the queue.
    const { owner } = this.#claim;
    const calledAtMs = this.startedAt.monotonicMs;
    const looking: Promise<TimedOut> = this.#session.inspections
      .inspect(this.#protocol, { owner, calledAtMs, timeoutMs })
      .then(
        (state) => ({ state }),
        (unseen: unknown) => ({ state: undefined, unseen }),
      );
    let refusal: unknown;
    const onRefused = (error: unknown): void => {
      refusal = error;
    };
    if (await this.#cleanUp(timeoutMs, onRefused)) return looking;
    if (refusal instanceof StoreError) {
      const { cause, transient, missingPermission } = refusal;
      throw new StoreError(this.#protocol.name, { mayHaveRun: true, transient, cause, missingPermission });
    }
    const cause = new Error(`the wait of ${waitMs} ms ended while the server did not answer`);
    throw new StoreError(this.#protocol.name, { mayHaveRun: true, transient: true, cause });
  }

  /** Resolves to whether it is certain that nothing is left. */
  async #cleanUp(timeoutMs: number, onRefused?: (error: unknown) => void): Promise<boolean> {
    if (!this.#isQueued && !this.#isUnclear()) return true;
    return this.#sendAway(timeoutMs, onRefused);
  }

  #sendAway(timeoutMs: number, onRefused?: (error: unknown) => void): Promise<boolean> {
    return cleanUp(this.#session, this.#protocol, this.#claim, this.#isUnclear(), timeoutMs, onRefused);
  }

  /** Whether a request may still be under way. Once settled, it becomes no more so. */
  #isUnclear(): boolean {
    return this.#uncertain.isUncertain || this.#open > 0 || this.#isConfirming;
  }

  #settle(): void {
    this.#isSettled = true;
    // After a reconnect the client may have sent it twice, and the first copy may be still on its way.
    const isTwofold = this.#reconnects !== this.#session.commandReconnects;
    if (this.#isQueued || this.#uncertain.isUncertain || isTwofold) {
      this.#session.remember(this.#claim, passingOn(this.#session, this.#protocol, this.#claim, this.#isUnclear()));
    }
    this.#deadline.stop();
    this.#polling?.cancel();
    this.#check?.leave(this);
    this.#session.dismiss(this.#claim, this);
  }
}

/** Gives a late grant back. Made outside of the waiter, which it would keep in memory with all that its caller has. */
function passingOn(session: Session, protocol: WaitProtocol, claim: Claim, isUncertain: boolean): () => void {
  return () => void cleanUp(session, protocol, claim, isUncertain, session.commandTimeoutMs);
}
