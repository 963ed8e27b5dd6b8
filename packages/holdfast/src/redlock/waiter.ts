/**
 * One caller on its way to a majority: attempt, stay away for a while, and try again.
 *
 * Invariants: each attempt has an owner id of its own; what a failed attempt has is given back on all servers before the
 * next one begins; once settled it takes no grant, and what an attempt under way has or gets is given back.
 */

import { ClosedError, StoreError } from "../core/errors.js";
import { publishAcquire, publishWait, tellingEnds } from "../core/events.js";
import type { ResolvedOptions } from "../core/options.js";
import { SHORTEST_CALL_MS } from "../core/polling.js";
import type { Claim, LockProtocol, WaitEnds } from "../core/protocol.js";
import type { Occupant, Session } from "../core/session.js";
import { Deadline } from "../core/time.js";
import { Ballot } from "./ballot.js";
import type { InLine, Line } from "./line.js";
import { RECHECK_MS } from "./pace.js";
import type { BallotClaim } from "./protocol.js";
import type { Quorum } from "./quorum.js";
import { Rest } from "./rest.js";
import type { RedlockPlace } from "./servers.js";
import type { Verdict } from "./vote.js";

/** Much less than the lease: with two rounds at their slowest, two thirds of it are left. */
const ROUNDS_IN_A_LEASE = 6;
/** See the file header. */
export class RedlockWaiter implements Occupant, InLine {
  readonly #quorum: Quorum;
  readonly #session: Session;
  readonly #protocol: LockProtocol;
  readonly #place: RedlockPlace;
  readonly #options: ResolvedOptions;
  readonly #ends: WaitEnds;
  readonly #deadline: Deadline;
  /** What the session knows it by, and its first attempt. */
  readonly #claim: Claim;
  #nextClaim: Claim | undefined;
  #line: Line | undefined;
  /** Whether a server may evict locks, while that is not known. */
  #vetting: Promise<void> | undefined;
  #ballot: Ballot | undefined;
  /** Whether servers are told how long the lease is, before they are asked for it. */
  #isTelling = false;
  /** What it does between two attempts; nothing if it does not wait. */
  #rest: Rest | undefined;
  #hasFailed = false;
  /** Whether others stood before it when it came. */
  #hasStood = false;
  #failingSinceMs: number | undefined;
  #failure: unknown;
  #hasTold = false;
  #isSettled = false;

  /** Tries at once, unless others of this Holdfast stand before it. @throws ClosedError */
  constructor(quorum: Quorum, protocol: LockProtocol, place: RedlockPlace, options: ResolvedOptions, ends: WaitEnds) {
    const { session } = quorum;
    this.#quorum = quorum;
    this.#session = session;
    this.#protocol = protocol;
    this.#place = place;
    this.#options = options;
    this.#claim = session.newClaim(place.name, options.leaseMs, 1, options.label);
    this.#nextClaim = this.#claim;
    this.#deadline = new Deadline(session.runtime, options, (end) => {
      if (end === "abort") this.#abort();
      else this.#timeUp();
    });
    const { startedAt } = this.#deadline;
    const { runtime } = session;
    this.#ends = tellingEnds(ends, {
      protocol,
      options,
      runtime,
      claim: () => this.#claim,
      startedAt: () => startedAt,
    });
    publishAcquire(protocol, this.#claim, options, startedAt, undefined);
    session.admit(this.#claim, this);
    if (options.waitMs === 0) {
      this.#attempt(undefined);
      return;
    }
    this.#line = quorum.lineOf(place);
    this.#rest = new Rest(session.runtime, this.#line, (firstServer) => this.#attempt(firstServer));
    this.#line.join(this);
    // Whoever stands behind others has no answer of its own to wait for.
    if (this.#ballot === undefined && !this.#isTelling && !this.#isSettled) {
      this.#hasStood = true;
      this.#deadline.start();
    }
  }

  advance(): void {
    // Who waits for less than a lost message takes may have no other chance.
    if (this.#line?.isWanted === true && this.#options.waitMs > RECHECK_MS) this.#rest?.giveWay();
    else this.#attempt(this.#line?.firstServer);
  }

  released(server: number): void {
    this.#rest?.released(server);
  }

  granted(): void {}

  recheck(): void {}

  revoked(): void {}

  reconnected(): void {
    this.#rest?.reconnected();
  }

  async close(): Promise<void> {
    if (this.#isSettled) return;
    this.#ends.failed(new ClosedError(this.#protocol.name));
    await this.#settle(this.#session.commandTimeoutMs);
  }

  #abort(): void {
    if (this.#isSettled) return;
    void this.#settle(this.#session.commandTimeoutMs);
    this.#ends.failed(this.#options.signal?.reason);
  }

  /** @param firstServer  the server to ask first; all at once if undefined */
  #attempt(firstServer: number | undefined): void {
    if (this.#isSettled || this.#ballot !== undefined || this.#isTelling || this.#isTooLate()) return;
    this.#rest?.end();
    const { memories } = this.#quorum;
    const told = memories.told(this.#place.name, this.#options.leaseMs, this.#callTimeoutMs());
    if (told === undefined) {
      this.#ask(firstServer);
      return;
    }
    this.#isTelling = true;
    void told.then((failure) => {
      this.#isTelling = false;
      if (this.#isSettled) return;
      if (failure === undefined) this.#ask(firstServer);
      else this.#unreached(undefined, failure);
    });
  }

  /** The attempt, when enough servers know how long the lease is. */
  #ask(firstServer: number | undefined): void {
    let claim: Claim;
    try {
      claim =
        this.#nextClaim ?? this.#session.newClaim(this.#place.name, this.#options.leaseMs, 1, this.#options.label);
    } catch (error) {
      // This Holdfast closes, and tells this waiter too.
      this.#fail(error);
      return;
    }
    this.#nextClaim = undefined;
    if (firstServer === undefined) this.#line?.asksAll();
    this.#vetting = this.#quorum.vet(this.#place.name);
    // Whoever is elected looks at it; an attempt that is not need not.
    this.#vetting?.catch(() => {});
    const { servers, pace } = this.#quorum;
    const server = firstServer === undefined ? undefined : servers[firstServer];
    this.#ballot = new Ballot({
      runtime: this.#session.runtime,
      servers,
      place: this.#place,
      claim,
      timeoutMs: this.#callTimeoutMs(),
      firstServer: server === undefined ? undefined : { server, patienceMs: pace.patienceMs },
      onVerdict: (verdict) => this.#decided(verdict),
    });
  }

  /**
   * Whether it has waited, and has less time left than winning takes. It would be in the way of those who have more: of a
   * thousand whose time is up one after the other, each would take what it cannot keep.
   */
  #isTooLate(): boolean {
    const hasWaited = this.#hasStood || this.#hasFailed;
    return hasWaited && this.#deadline.leftMs() < this.#quorum.pace.winMs;
  }

  /** For one answer of one server. */
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
      if (this.#vetting === undefined) elected();
      else this.#vetting.then(elected, (error: unknown) => this.#refused(ballot, error));
      return;
    }
    if (verdict.outcome === "refused") this.#refused(ballot, verdict.error);
    else if (verdict.outcome === "unreached") this.#unreached(ballot, verdict.error);
    else this.#outvoted(ballot);
  }

  #elected(ballot: Ballot, token: number): void {
    // Settled meanwhile, and then given back.
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
      // Nobody else was there. Else all meet where the first of the servers is that can be asked.
      this.#line.firstServer = this.#hasFailed
        ? ballot.votes.findIndex((vote) => vote?.outcome === "granted")
        : undefined;
    }
    const { startedAt: call } = this.#deadline;
    const waitedMs = this.#deadline.waitedMs();
    this.#leave();
    const { owner, number, leaseMs, amount } = ballot.claim;
    const claim: BallotClaim = { owner, number, leaseMs, amount, ballot };
    // Stragglers of this attempt are the ballot's own affair, and so is what they grant.
    const mayStillRun = (): boolean => false;
    this.#ends.granted({ claim, token, slots: [], setAt: ballot.startedAt, waitedMs, call, mayStillRun });
  }

  #tookPart({ startedAt }: Ballot): void {
    this.#quorum.pace.took(this.#session.runtime.monotonicMs() - startedAt.monotonicMs);
  }

  #refused(ballot: Ballot, error: unknown): void {
    if (this.#ballot !== ballot) return;
    this.#fail(error);
  }

  #outvoted(ballot: Ballot): void {
    // Who was not the first at the first server knows no more of it.
    if (ballot.firstServer === undefined || ballot.votes[ballot.firstServer.index]?.outcome !== "held")
      this.#tookPart(ballot);
    this.#failingSinceMs = undefined;
    this.#failure = undefined;
    if (this.#line !== undefined) this.#line.failure = undefined;
    if (this.#options.waitMs === 0) {
      this.#timeUp();
      return;
    }
    this.#ballot = undefined;
    this.#hasFailed = true;
    void this.#cleanUp(ballot, this.#session.commandTimeoutMs);
    this.#startDeadline();
    this.#tellWait();
    this.#rest?.begin(ballot);
  }

  /** @param ballot  none if too few servers could be told how long the lease is, so none was asked for it */
  #unreached(ballot: Ballot | undefined, error: StoreError): void {
    const nowMs = this.#session.runtime.monotonicMs();
    this.#failingSinceMs ??= nowMs;
    // As with one server: after a whole lease without an answer nothing that was granted before can still be ours.
    const isPastDeadline =
      nowMs - this.#failingSinceMs >= this.#options.leaseMs || this.#deadline.leftMs() <= 0 || !error.transient;
    if (this.#options.waitMs === 0 || isPastDeadline) {
      this.#fail(error);
      return;
    }
    this.#failure = error;
    if (this.#line !== undefined) this.#line.failure = error;
    this.#ballot = undefined;
    this.#hasFailed = true;
    if (ballot !== undefined) void this.#cleanUp(ballot, this.#session.commandTimeoutMs);
    this.#startDeadline();
    this.#rest?.poll();
  }

  #startDeadline(): void {
    this.#deadline.start();
    this.#ends.waiting?.();
  }

  #tellWait(): void {
    if (this.#hasTold) return;
    this.#hasTold = true;
    publishWait(this.#protocol, this.#claim, false);
  }

  #timeUp(): void {
    if (this.#isSettled) return;
    const failure = this.#failure ?? this.#line?.failure;
    const timeoutMs = Math.min(this.#session.commandTimeoutMs, SHORTEST_CALL_MS);
    const calledAtMs = this.#deadline.startedAt.monotonicMs;
    const cleared = this.#settle(timeoutMs);
    if (failure !== undefined) {
      void cleared.then(() => this.#ends.failed(failure));
    } else if (this.#options.waitMs === 0) {
      void cleared.then(() => this.#ends.timedOut({ state: undefined }));
    } else {
      void cleared
        .then(() => this.#session.inspections.inspect(this.#protocol, { calledAtMs, timeoutMs }))
        .then(
          (state) => this.#ends.timedOut({ state }),
          (error: unknown) => {
            // Who cannot be seen may hold; but that a majority does not answer is another matter.
            if (error instanceof StoreError) this.#ends.failed(error);
            else this.#ends.timedOut({ state: undefined });
          },
        );
    }
  }

  #fail(error: unknown): void {
    if (this.#isSettled) return;
    void this.#settle(this.#session.commandTimeoutMs).then(() => this.#ends.failed(error));
  }

  /** No grant is taken from now on. @returns when what an attempt under way had is given back where that can be known */
  #settle(timeoutMs: number): Promise<void> {
    const ballot = this.#ballot;
    this.#ballot = undefined;
    // Before the next one in line tries, so that it does not meet what this one has.
    const cleared = ballot === undefined ? Promise.resolve() : this.#cleanUp(ballot, timeoutMs);
    this.#leave();
    return cleared;
  }

  #leave(): void {
    this.#isSettled = true;
    this.#rest?.end();
    this.#deadline.stop();
    this.#session.dismiss(this.#claim, this);
    this.#line?.leave(this);
  }

  /** Resolves when every server that has granted has answered, or failed to. */
  async #cleanUp(ballot: Ballot, timeoutMs: number): Promise<void> {
    await this.#quorum.quorumCleanups.cleanUp(ballot, timeoutMs, (answers) =>
      ballot.votes.every((vote, server) => vote?.outcome !== "granted" || answers[server] !== undefined),
    );
  }
}
