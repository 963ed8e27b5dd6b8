/**
 * One caller on its way to a lock that other systems share: ask, and ask again. The server keeps no place for it and sends
 * no grant, so it sleeps until the present lease must be over, for `pauses` at most, or until the protocol's own message.
 *
 * What a claim does on its way is core's waiter, once it stands in front of its line: a lost reply is asked for again under
 * the same owner id; an abort, the deadline and `close` undo what the server may have done. Listening begins at the first
 * refusal, and then it asks once more before it sleeps.
 */
import { ClosedError } from "../index.js";
import {
  type AcquireReply,
  type Claim,
  Deadline,
  type Occupant,
  publishAcquire,
  publishUngranted,
  type ResolvedOptions,
  type Session,
  SHORTEST_CALL_MS,
  type ToldCall,
  tellingEnds,
  type WaitEnds,
  Waiter,
  type WaitProtocol,
} from "../internal.js";
import type { InLine, Line, Listen } from "./line.js";

/** How long a waiter sleeps at most, if nothing wakes it: `delayMs` less a random part of `jitterMs`. */
export interface Pauses {
  readonly delayMs: number;
  /** At most `delayMs`; larger keeps those who wait further apart from each other. */
  readonly jitterMs: number;
}

/** What a wait is made of. */
export interface ForeignWait {
  readonly session: Session;
  readonly protocol: WaitProtocol;
  readonly options: ResolvedOptions;
  readonly ends: WaitEnds;
  readonly pauses: Pauses;
  /** Where it stands behind others of its process; see `lineOf` and `lineOfOne`. */
  readonly line: Line;
  /** How to hear of changes, if the protocol tells of them; for the claim of whoever asks first. */
  readonly listen?: ((claim: Claim, onNews: () => void) => ReturnType<Listen>) | undefined;
  /** How often the server is asked at most, 1 or more, but for what a message calls for; Infinity to go by time alone. */
  readonly attempts?: number | undefined;
  /** What the format calls a claim with that number; the owner id of this library, unless it is said. */
  readonly ownerOf?: ((claimNumber: number) => string) | undefined;
}

/** See the file header. */
export class ForeignWaiter implements Occupant, InLine {
  readonly #wait: ForeignWait;
  readonly #ends: WaitEnds;
  readonly #call: ToldCall;
  readonly #claim: Claim;
  readonly #deadline: Deadline;
  /** Once it is in front. */
  #waiter: Waiter | undefined;
  #attempts = 0;
  /** Something has told it to ask, so that the next question is none of those that it may ask by itself. */
  #isCalled = false;
  #isSettled = false;

  /** Asks at once, unless others of its line stand before it. @throws ClosedError */
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
    this.#ends = tellingEnds(wait.ends, this.#call);
    publishAcquire(protocol, this.#claim, options, startedAt, session.store);
    session.admit(this.#claim, this);
    line.join(this);
    if (this.#waiter === undefined && !this.#isSettled) this.#deadline.stay();
  }

  advance(): void {
    const { session, options, protocol } = this.#wait;
    // `close` tells whoever is left.
    if (this.#isSettled || session.isClosing) return;
    // Of several who share a signal each leaves in turn, and this one has not been told yet.
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
      // Told before the next one is in front, so that no message that follows the grant finds nobody.
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

  heard(): void {
    this.#isCalled = true;
    this.#waiter?.reconnected();
  }

  granted(): void {}

  recheck(): void {}

  revoked(): void {}

  reconnected(): void {
    // Whoever is in front is its waiter, which is told by itself.
  }

  async close(): Promise<void> {
    if (this.#waiter !== undefined) await this.#waiter.close();
    else this.#end(() => this.#ends.failed(new ClosedError(this.#wait.protocol.name)));
  }

  /** The steps as one waiter takes them: with pauses of its own between two questions, and with an end to them. */
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
      // Whether it may stand in a queue of the protocol does not depend on our own channel.
      acquire: async (claim, _enqueue, timeoutMs) => {
        // A message that comes while this is under way calls for the next question, not for this one.
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
    // Later than this answer, which its waiter has yet to hear.
    if (this.#attempts >= attempts) session.runtime.startTimer(() => this.#giveUp(), 0, true);
    if (listen !== undefined) line.listen((onNews) => listen(this.#claim, onNews));
    const pauseMs = pauses.delayMs - pauses.jitterMs * session.runtime.random();
    return { ...attempt, restMs: Math.max(0, Math.min(attempt.restMs < 0 ? Infinity : attempt.restMs, pauseMs)) };
  }

  /** It has asked as often as it may. */
  #giveUp(): void {
    if (this.#isSettled || this.#waiter === undefined) return;
    this.#waiter.giveUp(this.#wait.options.waitMs).then(
      (end) => this.#end(() => this.#ends.timedOut(end)),
      (error: unknown) => this.#end(() => this.#ends.failed(error)),
    );
  }

  /** Behind others, and then nothing is held and nothing was asked. */
  #timeUp(): void {
    const { session, protocol } = this.#wait;
    const ends = this.#ends;
    const timeoutMs = Math.min(session.commandTimeoutMs, SHORTEST_CALL_MS);
    const calledAtMs = this.#deadline.startedAt.monotonicMs;
    this.#end(() => {
      session.inspections.inspect(protocol, { calledAtMs, timeoutMs }).then(
        (state) => ends.timedOut({ state }),
        (unseen: unknown) => ends.timedOut({ state: undefined, unseen }),
      );
    });
  }

  #abort(): void {
    this.#end(() => this.#ends.failed(this.#wait.options.signal?.reason));
  }

  #end(tell: () => void): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#deadline.stop();
    const { session, line } = this.#wait;
    session.dismiss(this.#claim, this);
    tell();
    line.leave(this);
  }
}
