/**
 * Waits for a lock that is shared with clients of another system. The server keeps no Holdfast queue and pushes no
 * grants. So the waiter sleeps until the current lease ends or a message of the foreign protocol arrives, but no longer
 * than `pauses` allows.
 */
import { ClosedError } from "../core/errors.js";
import { type PublishedCall, publishAcquire, publishingEnds, publishUngranted } from "../core/events.js";
import type { ResolvedOptions } from "../core/options.js";
import { SHORTEST_CALL_MS } from "../core/polling.js";
import type { AcquireReply, Claim, WaitEnds, WaitProtocol } from "../core/protocol.js";
import type { Occupant, Session } from "../core/session.js";
import { Deadline } from "../core/time.js";
import { Waiter } from "../core/waiter.js";
import type { InLine, Line, Listen } from "./line.js";

/** How long a waiter sleeps unless a message wakes it: `delayMs` minus a random part of `jitterMs`. */
export interface Pauses {
  /** Longest sleep, in ms. */
  readonly delayMs: number;
  /** In ms, 0 to `delayMs`. A larger value spreads the requests of different waiters further apart. */
  readonly jitterMs: number;
}

/** The parts of one wait. */
export interface ForeignWait {
  /** The session of the Holdfast that runs all requests. */
  readonly session: Session;
  /** Sends the requests. */
  readonly protocol: WaitProtocol;
  /** The options of the caller. */
  readonly options: ResolvedOptions;
  /** Called when the wait ends. */
  readonly ends: WaitEnds;
  /** How long to sleep between two requests. */
  readonly pauses: Pauses;
  /** Local line of callers in this process, from `lineOf` or `lineOfOne`. */
  readonly line: Line;
  /** Subscribes to changes, if the protocol publishes them. `claim` is that of the first caller in line. */
  readonly listen?: ((claim: Claim, onNews: () => void) => ReturnType<Listen>) | undefined;
  /** Maximum number of requests, 1 or more, not counting those caused by a message. Default: Infinity. */
  readonly attempts?: number | undefined;
  /** Returns the owner id of a claim in the foreign format. Default: the claim keeps its Holdfast owner id. */
  readonly ownerOf?: ((claimNumber: number) => string) | undefined;
}

/**
 * One caller that waits for a foreign lock.
 *
 * At the front of its line, it delegates to core's `Waiter`. That class resends a request that got no reply, under the
 * same owner id. It also undoes whatever the server may have done if the wait ends by abort, deadline or `close`. The
 * first refusal starts the subscription. Once subscribed, the waiter asks again before it sleeps.
 */
export class ForeignWaiter implements Occupant, InLine {
  readonly #wait: ForeignWait;
  readonly #ends: WaitEnds;
  readonly #call: PublishedCall;
  readonly #claim: Claim;
  readonly #deadline: Deadline;
  /** Set once this caller is at the front of its line. */
  #waiter: Waiter | undefined;
  #attempts = 0;
  /** Whether a message has arrived since the last request. A request caused by a message is not an attempt. */
  #isCalled = false;
  #isSettled = false;

  /**
   * Sends the first request immediately, unless other callers are ahead in the line.
   *
   * @throws ClosedError  Holdfast is closed
   */
  constructor(wait: ForeignWait) {
    const { session, protocol, options, line } = wait;
    this.#wait = wait;
    const claim = session.newClaim(protocol.name, options.leaseMs, options.amount, options.label);
    this.#claim = wait.ownerOf === undefined ? claim : { ...claim, owner: wait.ownerOf(claim.number) };
    this.#deadline = new Deadline(session.runtime, options, (end) => {
      if (end === "abort") this.#abort();
      else this.#timeUp();
    });
    const { startedAt } = this.#deadline;
    const { runtime } = session;
    this.#call = { protocol, options, runtime, claim: () => this.#claim, startedAt: () => startedAt };
    this.#ends = publishingEnds(wait.ends, this.#call);
    publishAcquire(protocol, this.#claim, options, startedAt, session.store);
    session.admit(this.#claim, this);
    line.join(this);
    if (this.#waiter === undefined && !this.#isSettled) this.#deadline.stay();
  }

  /** Called by the line when this caller reaches the front: starts to send requests. */
  advance(): void {
    const { session, options, protocol } = this.#wait;
    // `close` rejects the remaining callers.
    if (this.#isSettled || session.isClosing) return;
    // Callers that share a signal leave one after another, so this one may not have received its abort event yet.
    if (options.signal?.aborted === true) {
      this.#abort();
      return;
    }
    const leftMs = this.#deadline.leftMs();
    if (options.waitMs > 0 && leftMs <= 0) {
      this.#timeUp();
      return;
    }
    this.#deadline.stop();
    const call = this.#deadline.startedAt;
    const ends = this.#ends;
    this.#waiter = new Waiter(session, this.#protocol(), { ...options, waitMs: Math.max(0, leftMs) }, this.#claim, {
      ...(ends.waiting === undefined ? {} : { waiting: ends.waiting }),
      // Notify the caller before the next one advances, so that a message right after the grant finds a recipient.
      granted: (granted) =>
        this.#end(() => {
          if (protocol.holdsNothing === true) publishUngranted(this.#call, "passed");
          ends.granted({ ...granted, waitedMs: this.#deadline.waitedMs(), call });
        }),
      timedOut: (end) => this.#end(() => ends.timedOut(end)),
      failed: (error) => this.#end(() => ends.failed(error)),
    });
    this.#waiter.ask();
  }

  /** Called by the line when a message arrives: sends a request. */
  heard(): void {
    this.#isCalled = true;
    this.#waiter?.reconnected();
  }

  /** Does nothing: the server pushes no grants of foreign locks. */
  granted(): void {}

  /** Does nothing: the inner `Waiter` handles rechecks. */
  recheck(): void {}

  /** Does nothing: a caller behind others has no claim on the server. */
  revoked(): void {}

  /** Does nothing: the inner `Waiter` in front is notified separately, and the other callers have sent nothing. */
  reconnected(): void {}

  /** Ends the wait with a ClosedError. */
  async close(): Promise<void> {
    if (this.#waiter !== undefined) await this.#waiter.close();
    else this.#end(() => this.#ends.failed(new ClosedError(this.#wait.protocol.name)));
  }

  /** The protocol for the inner `Waiter`, with pauses between requests and a limit on the number of requests. */
  #protocol(): WaitProtocol {
    const { protocol } = this.#wait;
    const { confirm, holdsNothing, mode, key } = protocol;
    return {
      kind: protocol.kind,
      name: protocol.name,
      asksAgain: true,
      ...(mode === undefined ? {} : { mode }),
      ...(key === undefined ? {} : { key }),
      ...(protocol.keepsPlaces === true ? { keepsPlaces: true } : {}),
      ...(holdsNothing === undefined ? {} : { holdsNothing }),
      ...(confirm === undefined ? {} : { confirm: (granted, timeoutMs) => confirm.call(protocol, granted, timeoutMs) }),
      // `waitMs > 0` replaces `_enqueue`, because `_enqueue` depends on Holdfast's own channel, which this protocol
      // does not use.
      acquire: async (claim, _enqueue, timeoutMs) => {
        // Read and clear the flag before sending: a message that arrives during this request triggers the next one.
        const isCalled = this.#isCalled;
        this.#isCalled = false;
        return this.#answered(await protocol.acquire(claim, this.#wait.options.waitMs > 0, timeoutMs), isCalled);
      },
      leave: (claim, timeoutMs) => protocol.leave(claim, timeoutMs),
      inspect: (owner, timeoutMs) => protocol.inspect(owner, timeoutMs),
    };
  }

  #answered(attempt: AcquireReply, isCalled: boolean): AcquireReply {
    if (attempt.outcome === "granted" || this.#isSettled || this.#wait.options.waitMs === 0) return attempt;
    const { session, line, listen, attempts = Infinity, pauses } = this.#wait;
    if (!isCalled) this.#attempts += 1;
    // This is deferred because the inner `Waiter` has not processed this reply yet.
    if (this.#attempts >= attempts) session.runtime.startTimer(() => this.#giveUp(), 0, true);
    if (listen !== undefined) line.listen((onNews) => listen(this.#claim, onNews));
    const pauseMs = pauses.delayMs - pauses.jitterMs * session.runtime.random();
    return { ...attempt, restMs: Math.max(0, Math.min(attempt.restMs < 0 ? Infinity : attempt.restMs, pauseMs)) };
  }

  /** Ends the wait because `attempts` is used up. */
  #giveUp(): void {
    if (this.#isSettled || this.#waiter === undefined) return;
    const waitedMs = this.#wait.session.runtime.monotonicMs() - this.#deadline.startedAt.monotonicMs;
    this.#waiter.giveUp(Math.max(1, Math.ceil(waitedMs))).then(
      (end) => this.#end(() => this.#ends.timedOut(end)),
      (error: unknown) => this.#end(() => this.#ends.failed(error)),
    );
  }

  /** Ends a wait that timed out behind other callers. This caller has sent no request, so it holds nothing. */
  #timeUp(): void {
    const { session, protocol } = this.#wait;
    const ends = this.#ends;
    const timeoutMs = Math.min(session.commandTimeoutMs, SHORTEST_CALL_MS);
    const calledAtMs = this.#deadline.startedAt.monotonicMs;
    this.#end(() => {
      void session.inspections.inspect(protocol, { calledAtMs, timeoutMs }).then(ends.timedOut);
    });
  }

  #abort(): void {
    this.#end(() => this.#ends.failed(this.#wait.options.signal?.reason));
  }

  #end(settle: () => void): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#deadline.stop();
    const { session, line } = this.#wait;
    session.dismiss(this.#claim, this);
    settle();
    line.leave(this);
  }
}
