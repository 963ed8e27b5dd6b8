/**
 * The requests of a waiter, and when it asks again by itself.
 */

import type { InboxCheck, Listening } from "./inbox-check.js";
import type { ResolvedOptions } from "./options.js";
import type { AcquireReply, Claim, WaitProtocol } from "./protocol.js";
import type { Runtime, Timer } from "./runtime.js";
import type { Session } from "./session.js";
import type { Deadline, GrantMoment, Moment } from "./time.js";

/** A deadline that is nearer than this does not make a call give up sooner: it would fail on any hiccup. */
export const SHORTEST_CALL_MS = 200;

/** What the questions are about. */
export interface Asked {
  readonly session: Session;
  readonly protocol: WaitProtocol;
  readonly claim: Claim;
  readonly options: ResolvedOptions;
  readonly deadline: Deadline;
  readonly moment: GrantMoment;
}

/** Whom the answers are for. */
export interface Asker {
  answered(attempt: AcquireReply, sentAt: Moment): void;
  /** A request had no answer, or an error for one. */
  failed(error: unknown): void;
  /** Whether a pause is no reason to stop waiting. */
  readonly waitsThroughPause: boolean;
  /** It is clear by now that the wait goes on without a place in the queue. */
  goesOnWithoutQueue(): void;
}

/**
 * The requests of one claim on its way: one at a time, again when there is a reason, and never after it is settled.
 *
 * Invariants: whoever stands in the queue sends nothing but its re-checks; whoever cannot be reached does not queue; and
 * a reason to ask that comes while an answer is out is not forgotten.
 */
export class Questions implements Listening {
  readonly #asked: Asked;
  readonly #asker: Asker;
  #rechecks: Rechecks | undefined;
  /** Of the connection on which it is notified, once it stands in the queue. */
  #check: InboxCheck | undefined;
  /** Requests without an answer: one, or two after a message that shows that the server has run the first. */
  #open = 0;
  #askAgain = false;
  #isOver = false;

  constructor(asked: Asked, asker: Asker) {
    this.#asked = asked;
    this.#asker = asker;
  }

  /** Whether a request may still be under way. */
  get areOpen(): boolean {
    return this.#open > 0;
  }

  /** Asks, or asks again as soon as the answer that is out has come. */
  ask(): void {
    if (this.#isOver) return;
    if (this.#open > 0) this.#askAgain = true;
    else this.#send();
  }

  /** Does not wait for an answer that may be lost: what the server tells of may be over before that is known. */
  askAtOnce(): void {
    if (!this.#isOver && this.#open === 1) this.#send();
    else this.ask();
  }

  /** What follows on the answer "you wait": `restMs` is left of the present lease, or negative if it has no end. */
  queued(restMs: number): void {
    if (this.#askAgain) {
      this.ask();
      return;
    }
    const { session, protocol } = this.#asked;
    this.#listen();
    if (this.#check?.isDeaf === true) this.#later().poll();
    else this.#later().queued(restMs, session.recheckMs(protocol));
  }

  /** The connection may be another one than before: a slot of a cluster moves. */
  #listen(): void {
    const { session, protocol } = this.#asked;
    const check = protocol.asksAgain === true ? undefined : session.inboxCheck(protocol);
    if (check === this.#check) return;
    this.#check?.leave(this);
    this.#check = check;
    check?.join(this);
  }

  /** What follows on an answer without a place in the queue: it listens first, or asks now and then if it never can. */
  queueOrPoll(): void {
    if (this.#askAgain) {
      this.ask();
      return;
    }
    const { session, protocol } = this.#asked;
    const goWithout = (): void => {
      if (!this.#isOver) this.#asker.goesOnWithoutQueue();
      this.poll();
    };
    if (session.mailbox.unsupported) {
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
    if (this.#isOver || this.#open > 0) return;
    this.#later().poll();
  }

  /** The server may not grant for `restMs` more. */
  quiet(restMs: number): void {
    if (!this.#isOver && this.#open === 0) this.#later().quiet(restMs);
  }

  /** The claim is settled: nothing is sent any more. */
  end(): void {
    this.#isOver = true;
    this.#rechecks?.cancel();
    this.#check?.leave(this);
  }

  /** It asks by itself, because a message may be lost. */
  #recheck(): void {
    this.#check?.due();
    if (!this.#isOver && this.#open === 0) this.#send(true);
    else this.ask();
  }

  /** On the path of every acquire, hence callbacks in place of an async function. */
  #send(isRecheck = false): void {
    const { session, protocol, claim, options, moment } = this.#asked;
    this.#open += 1;
    this.#askAgain = false;
    this.#rechecks?.cancel();
    const sentAt = moment.sent();
    const enqueue = options.waitMs > 0 && session.canBeTold(protocol);
    const timeoutMs = this.#timeoutMs();
    const { guard } = session;
    const attempt = guard.isOpen
      ? protocol.acquire(claim, enqueue, timeoutMs, this.#asker.waitsThroughPause)
      : guard.pass(
          protocol.name,
          () => protocol.acquire(claim, enqueue, timeoutMs, this.#asker.waitsThroughPause),
          timeoutMs,
        );
    attempt.then(
      (attempt) => {
        this.#open -= 1;
        // Where other clients release without a message, this is how a grant is found.
        if (isRecheck && attempt.outcome === "granted" && protocol.recheckMs === undefined) this.#check?.missed();
        this.#asker.answered(attempt, sentAt);
      },
      (error: unknown) => {
        this.#open -= 1;
        this.#asker.failed(error);
      },
    );
  }

  /** Made on demand: most acquires ask once. */
  #later(): Rechecks {
    this.#rechecks ??= new Rechecks(this.#asked.session.runtime, () => this.#recheck());
    return this.#rechecks;
  }

  #timeoutMs(): number {
    const { session, options, deadline } = this.#asked;
    if (options.waitMs === 0) return session.commandTimeoutMs;
    return Math.min(session.commandTimeoutMs, Math.max(deadline.leftMs(), SHORTEST_CALL_MS));
  }
}

/** The present lease must be over on the server too when a waiter asks at its end. */
const AFTER_LEASE_MS = 5;
/** As long as a server is quiet it is asked this often, in case another one has taken its place. */
const QUIET_MS = 5_000;
/** Before jitter, which takes off up to a half: nobody asks sooner than after 10 ms. */
const POLL_MIN_MS = 20;
const POLL_MAX_MS = 500;

/**
 * When a waiter asks again by itself. A waiter in the queue asks in case a message was lost: when the present lease must be
 * over, and every 3 s. A waiter that cannot queue, or gets no messages, asks with growing pauses.
 *
 * One timer, which keeps the process alive.
 */
export class Rechecks {
  readonly #runtime: Runtime;
  readonly #ask: () => void;
  #timer: Timer | undefined;
  #pollMs = POLL_MIN_MS;

  constructor(runtime: Runtime, ask: () => void) {
    this.#runtime = runtime;
    this.#ask = ask;
  }

  /** In the queue, behind a lease that is over in `restMs`, or that has no end if that is negative; after `mostMs` in any case. */
  queued(restMs: number, mostMs: number): void {
    const jitterMs = this.#runtime.random() * 20;
    const leaseEndMs = restMs < 0 ? Infinity : restMs + AFTER_LEASE_MS + jitterMs;
    this.in(Math.min(leaseEndMs, mostMs + jitterMs));
  }

  /** Outside of the queue, or in the queue of a client that gets no messages: later each time. */
  poll(): void {
    this.in(this.#pollMs * (0.5 + this.#runtime.random() / 2));
    this.#pollMs = Math.min(this.#pollMs * 2, POLL_MAX_MS);
  }

  /** The server may not grant before `restMs` have passed; or somewhat later, if others tell it of longer leases. */
  quiet(restMs: number): void {
    this.in(Math.min(restMs, QUIET_MS) + this.#runtime.random() * 20);
  }

  /** In place of what was planned before. */
  in(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#runtime.startTimer(this.#ask, delayMs, true);
  }

  /** Nothing is planned any more. */
  cancel(): void {
    this.#timer?.cancel();
  }
}
