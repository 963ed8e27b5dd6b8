/**
 * One caller that waits for a majority: it makes an attempt, pauses and tries again.
 *
 * Invariants:
 * - Each attempt has its own owner id.
 * - The release of a failed attempt is sent to all servers before the next attempt begins.
 * - A settled waiter accepts no grant. Everything that an attempt in progress takes is released.
 */

import { ClosedError, QuorumError, StoreError } from "../core/errors.js";
import { publishAcquire, publishingEnds, publishWait } from "../core/events.js";
import type { ResolvedOptions } from "../core/options.js";
import { SHORTEST_CALL_MS, UncertainReply } from "../core/polling.js";
import type { Claim, LockProtocol, TimedOut, WaitEnds } from "../core/protocol.js";
import type { Occupant, Session } from "../core/session.js";
import { Deadline } from "../core/time.js";
import { AttemptDelay } from "./attempt-delay.js";
import { Ballot, type Verdict } from "./ballot.js";
import type { Line, LineMember } from "./line.js";
import { RECHECK_MS } from "./pace.js";
import type { BallotClaim } from "./protocol.js";
import type { Quorum } from "./quorum.js";
import type { RedlockPlace } from "./servers.js";

/**
 * The timeout of a request is at most the lease length divided by this number. So two thirds of the lease remain after
 * two slow rounds.
 */
const ROUNDS_IN_A_LEASE = 6;
/** One caller that waits for a majority. */
export class RedlockWaiter implements Occupant, LineMember {
  readonly #quorum: Quorum;
  readonly #session: Session;
  readonly #protocol: LockProtocol;
  readonly #place: RedlockPlace;
  readonly #options: ResolvedOptions;
  readonly #ends: WaitEnds;
  readonly #deadline: Deadline;
  /** The claim under which this waiter is registered with the session. Its first attempt uses this claim too. */
  readonly #claim: Claim;
  #nextClaim: Claim | undefined;
  #line: Line | undefined;
  /** The check of whether the servers may be used; undefined if that was known before the attempt. */
  #checking: Promise<void> | undefined;
  #ballot: Ballot | undefined;
  /** Whether the servers are being informed of the length of the lease, before the attempt begins. */
  #isInforming = false;
  /** The pause between two attempts; undefined if this caller does not wait. */
  #delay: AttemptDelay | undefined;
  #hasFailed = false;
  /** Whether other callers were ahead in the line when this caller joined. */
  #wasQueued = false;
  readonly #uncertain = new UncertainReply();
  #hasPublishedWait = false;
  #isSettled = false;

  /**
   * Makes an attempt immediately, unless other callers of this Holdfast instance are ahead in the line.
   *
   * @throws ClosedError
   */
  constructor(quorum: Quorum, protocol: LockProtocol, place: RedlockPlace, options: ResolvedOptions, ends: WaitEnds) {
    const { session } = quorum;
    this.#quorum = quorum;
    this.#session = session;
    this.#protocol = protocol;
    this.#place = place;
    this.#options = options;
    this.#claim = this.#newClaim();
    this.#nextClaim = this.#claim;
    this.#deadline = new Deadline(session.runtime, options, (end) => {
      if (end === "abort") this.#abort();
      else void this.#timeUp();
    });
    const { startedAt } = this.#deadline;
    const { runtime } = session;
    const call = { protocol, options, runtime, claim: () => this.#claim, startedAt: () => startedAt };
    this.#ends = publishingEnds(ends, call);
    publishAcquire(protocol, this.#claim, options, startedAt, undefined);
    session.admit(this.#claim, this);
    if (options.waitMs === 0) {
      this.#attempt(undefined);
      return;
    }
    this.#line = quorum.lineOf(place);
    this.#delay = new AttemptDelay(session.runtime, this.#line, (firstServer) => this.#attempt(firstServer));
    this.#line.join(this);
    // Start the deadline now, because a caller behind others has no request of its own whose reply would start it.
    if (this.#ballot === undefined && !this.#isInforming && !this.#isSettled) {
      this.#wasQueued = true;
      this.#deadline.start();
    }
  }

  advance(): void {
    // A caller whose `waitMs` is RECHECK_MS or less does not give way, because it may get no other chance.
    if (this.#line?.isWanted === true && this.#options.waitMs > RECHECK_MS) this.#delay?.giveWay();
    else this.#attempt(this.#line?.firstServer);
  }

  released(server: number): void {
    this.#delay?.released(server);
  }

  granted(): void {}

  recheck(): void {}

  revoked(): void {}

  reconnected(): void {
    this.#delay?.reconnected();
  }

  async close(): Promise<void> {
    if (this.#isSettled) return;
    this.#ends.failed(new ClosedError(this.#protocol.name));
    await this.#settle();
  }

  #abort(): void {
    if (this.#isSettled) return;
    void this.#settle();
    this.#ends.failed(this.#options.signal?.reason);
  }

  /** @param firstServer  the server to ask first; if undefined, asks all in parallel */
  #attempt(firstServer: number | undefined): void {
    if (this.#isSettled || this.#ballot !== undefined || this.#isInforming || this.#isTooLate()) return;
    this.#delay?.end();
    const { memories } = this.#quorum;
    const informed = memories.inform(this.#place.name, this.#options.leaseMs, this.#callTimeoutMs());
    if (informed === undefined) {
      this.#ask(firstServer);
      return;
    }
    this.#isInforming = true;
    void informed.then((failure) => {
      this.#isInforming = false;
      if (this.#isSettled) return;
      if (failure === undefined) this.#ask(firstServer);
      else this.#unreached(undefined, failure);
    });
  }

  /** Begins the attempt, once enough servers know the length of the lease. */
  #ask(firstServer: number | undefined): void {
    let claim: Claim;
    try {
      claim = this.#nextClaim ?? this.#newClaim();
    } catch (error) {
      // The Holdfast instance is closing.
      this.#fail(error);
      return;
    }
    this.#nextClaim = undefined;
    if (firstServer === undefined) this.#line?.moved();
    this.#checking = this.#quorum.checkServers(this.#place.name);
    // The error matters only if the attempt wins a majority. `#decided` handles it then.
    this.#checking?.catch(() => {});
    const { servers, pace } = this.#quorum;
    this.#ballot = new Ballot({
      runtime: this.#session.runtime,
      servers,
      place: this.#place,
      claim,
      timeoutMs: this.#callTimeoutMs(),
      firstServer: firstServer === undefined ? undefined : servers[firstServer],
      patienceMs: pace.patienceMs,
      onVerdict: (verdict) => this.#decided(verdict),
    });
  }

  #newClaim(): Claim {
    return this.#session.newClaim(this.#place.name, this.#options.leaseMs, 1, this.#options.label);
  }

  /**
   * Whether the caller has waited and has less time left than it takes to win a majority. Its attempt would only block
   * waiters that have more time. Without this check, 1,000 waiters that time out one after the other would each take
   * servers that they cannot keep.
   */
  #isTooLate(): boolean {
    const hasWaited = this.#wasQueued || this.#hasFailed;
    return hasWaited && this.#deadline.leftMs() < this.#quorum.pace.winMs;
  }

  /** The timeout for the reply of one server, in ms. */
  #callTimeoutMs(): number {
    const mostMs = Math.min(this.#session.commandTimeoutMs, Math.floor(this.#options.leaseMs / ROUNDS_IN_A_LEASE));
    if (this.#options.waitMs === 0) return mostMs;
    return Math.min(mostMs, Math.max(Math.ceil(this.#deadline.leftMs()), SHORTEST_CALL_MS));
  }

  #decided(verdict: Verdict): void {
    const ballot = this.#ballot;
    if (ballot === undefined) return;
    if (verdict.outcome === "elected") {
      const elected = (): void => this.#elected(ballot, verdict.token);
      if (this.#checking === undefined) elected();
      else
        this.#checking.then(elected, (error: unknown) => {
          if (this.#ballot === ballot) this.#fail(error);
        });
    } else if (verdict.outcome === "refused") this.#fail(verdict.error);
    else if (verdict.outcome === "unreached") this.#unreached(ballot, verdict.error);
    else this.#outvoted(ballot);
  }

  #elected(ballot: Ballot, token: number): void {
    // If the ballot has changed, the waiter has been settled in the meantime, and the attempt is being released.
    if (this.#ballot !== ballot) return;
    if (ballot.leftMs() <= 0) {
      this.#unreached(ballot, ballot.lateError());
      return;
    }
    this.#tookPart(ballot);
    this.#ballot = undefined;
    if (this.#line !== undefined) {
      this.#line.failure = undefined;
      if (ballot.firstServer !== undefined) this.#line.passedFirst(true);
      // If the first attempt won, there was no competition, so later attempts ask all servers in parallel. Otherwise,
      // they start with the first server that granted.
      this.#line.firstServer = this.#hasFailed
        ? ballot.votes.findIndex((vote) => vote?.outcome === "granted")
        : undefined;
    }
    const { startedAt: call } = this.#deadline;
    const waitedMs = this.#deadline.waitedMs();
    this.#leave();
    const { owner, number, leaseMs, amount } = ballot.claim;
    const claim: BallotClaim = { owner, number, leaseMs, amount, ballot };
    // The ballot handles late replies and grants of this attempt itself.
    const mayStillRun = (): boolean => false;
    this.#ends.granted({ claim, token, slots: [], setAt: ballot.startedAt, waitedMs, call, mayStillRun });
  }

  #tookPart({ startedAt }: Ballot): void {
    this.#quorum.pace.took(this.#session.runtime.monotonicMs() - startedAt.monotonicMs);
  }

  #outvoted(ballot: Ballot): void {
    // An attempt that lost the first server says nothing about how long winning takes.
    if (!ballot.lostAtFirst) this.#tookPart(ballot);
    this.#uncertain.answered();
    if (this.#line !== undefined) this.#line.failure = undefined;
    if (this.#options.waitMs === 0) {
      void this.#timeUp();
      return;
    }
    this.#ballot = undefined;
    this.#hasFailed = true;
    void this.#cleanUp(ballot);
    this.#deadline.start();
    if (!this.#hasPublishedWait) publishWait(this.#protocol, this.#claim, false);
    this.#hasPublishedWait = true;
    this.#delay?.begin(ballot);
  }

  /** @param ballot  undefined if too few servers could be informed of the lease length, so no attempt began */
  #unreached(ballot: Ballot | undefined, error: StoreError): void {
    const failingMs = this.#uncertain.failingMs(this.#session.runtime.monotonicMs());
    // As with a single server, fail after a full lease length without replies: any earlier grant has expired by then.
    const isPastDeadline = failingMs >= this.#options.leaseMs || this.#deadline.leftMs() <= 0 || !error.transient;
    if (this.#options.waitMs === 0 || isPastDeadline) {
      this.#fail(error);
      return;
    }
    this.#uncertain.goesOn(error);
    if (this.#line !== undefined) this.#line.failure = error;
    this.#ballot = undefined;
    this.#hasFailed = true;
    if (ballot !== undefined) void this.#cleanUp(ballot);
    this.#deadline.start();
    this.#delay?.poll();
  }

  async #timeUp(): Promise<void> {
    if (this.#isSettled) return;
    const failure = this.#uncertain.last ?? this.#line?.failure;
    const timeoutMs = Math.min(this.#session.commandTimeoutMs, SHORTEST_CALL_MS);
    const calledAtMs = this.#deadline.startedAt.monotonicMs;
    await this.#settle(timeoutMs);
    if (failure !== undefined) {
      this.#ends.failed(failure);
      return;
    }
    let end: TimedOut = { state: undefined };
    if (this.#options.waitMs > 0) {
      end = await this.#session.inspections.inspect(this.#protocol, { calledAtMs, timeoutMs });
    }
    // If any server replied that the lock is held, report a normal timeout, even if the holder is uncertain. Any other
    // failure to read the state fails the wait.
    const { state, unseen } = end;
    const isUnsure = unseen instanceof QuorumError && unseen.answers.some(({ answer }) => answer === "held");
    if (unseen instanceof StoreError && !isUnsure) this.#ends.failed(unseen);
    else this.#ends.timedOut({ state });
  }

  #fail(error: unknown): void {
    if (this.#isSettled) return;
    void this.#settle().then(() => this.#ends.failed(error));
  }

  /**
   * Accepts no grant from now on. Resolves when, on each server that granted the attempt in progress, the release has
   * been answered or has failed.
   */
  #settle(timeoutMs?: number): Promise<void> {
    const ballot = this.#ballot;
    this.#ballot = undefined;
    // Send the release before the next caller in the line makes an attempt, so that the old attempt does not block it.
    const cleared = ballot === undefined ? Promise.resolve() : this.#cleanUp(ballot, timeoutMs);
    this.#leave();
    return cleared;
  }

  #leave(): void {
    this.#isSettled = true;
    this.#delay?.end();
    this.#deadline.stop();
    this.#session.dismiss(this.#claim, this);
    this.#line?.leave(this);
  }

  /**
   * Releases an attempt. Resolves when, on each server that granted it, the release has been answered or has failed.
   */
  async #cleanUp(ballot: Ballot, timeoutMs = this.#session.commandTimeoutMs): Promise<void> {
    await this.#quorum.quorumCleanups.cleanUp(ballot, timeoutMs, (answers) =>
      ballot.votes.every((vote, server) => vote?.outcome !== "granted" || answers[server] !== undefined),
    );
  }
}
