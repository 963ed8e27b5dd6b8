/** A claim that this process keeps while none of its callers holds the lock. See docs/adr/146. */
import { type Caller, serve } from "../core/batch.js";
import { publishAcquire } from "../core/events.js";
import type { InboxCheck } from "../core/inbox-check.js";
import { type Claim, type Granted, type LockProtocol, NOTHING_RUNS } from "../core/protocol.js";
import { cleanUp } from "../core/release.js";
import type { Retainable } from "../core/retention.js";
import { outsideRequests, type Runtime, type Timer } from "../core/runtime.js";
import type { Occupant, Session } from "../core/session.js";
import { type Moment, msFrom, now, validUntil } from "../core/time.js";

/**
 * How many tokens the first claim reserves. This number and the larger ones computed from it are odd, which tells the
 * scripts that the claim may be retained; see lua/recall.
 */
export const FIRST_BLOCK = 31;
/** The largest number of tokens that a claim reserves. */
const LARGEST_BLOCK = 65_535;

/**
 * Returns how many tokens to reserve after a claim has used its `amount` tokens in `passedUs` microseconds: about twice
 * as many if that exceeds neither `passedUs` nor `LARGEST_BLOCK`, otherwise at most `amount`. With larger blocks,
 * tokens could outrun the server's clock (docs/adr/060).
 */
export function blockAfter(amount: number, passedUs: number): number {
  const twice = amount * 2 + 1;
  if (twice <= Math.min(passedUs, LARGEST_BLOCK)) return twice;
  return amount <= passedUs ? amount : FIRST_BLOCK;
}

/**
 * How long callers may be served within one turn of the event loop, in ms. After that, the next caller asks the server.
 * Otherwise, callers that do only short work without I/O would keep recalls, timers and the renewals of other leases
 * from running.
 */
const TURN_MS = 20;

/** Maximum number of locks that a session remembers as wanted by others. A forgotten lock may be retained again. */
const REMEMBERED = 1_000;
/** Stored instead of a time if a claim was recalled and this process has not been granted the lock since. */
const RECALLED = Infinity;

/** The state that the claims of one session share. */
class Surroundings {
  readonly #runtime: Runtime;
  /** Maps the key of each lock that others want to the time until which it is not retained (monotonic clock, in ms). */
  readonly #wanted = new Map<string, number>();
  #turnEndsAtMs: number | undefined;

  constructor({ runtime }: Session) {
    this.#runtime = runtime;
  }

  /** Called when a claim is recalled because others want the lock. */
  recalled(key: string): void {
    this.#want(key, RECALLED);
  }

  /**
   * Returns whether a claim that was just granted may be retained.
   *
   * If this claim had to wait, or if other callers are waiting, neither this claim nor the next one is retained. If
   * this claim is the first one after a recall and did not have to wait, the process that caused the recall has no
   * place in the queue. In that case, no claim is retained until `retainMs` has passed, so that the other process can
   * find the lock free on its next attempt.
   */
  granted(key: string, hasWaited: boolean, callers: number, retainMs: number): boolean {
    const untilMs = this.#wanted.get(key);
    if (untilMs === undefined && !hasWaited && callers === 0) return true;
    const notForMs = untilMs === RECALLED && !hasWaited ? retainMs : 0;
    if (untilMs === undefined || untilMs === RECALLED) this.#want(key, this.#runtime.monotonicMs() + notForMs);
    return false;
  }

  /** Whether the next claim of this lock may be retained. Called once for each claim. */
  mayRetainNext(key: string): boolean {
    const untilMs = this.#wanted.get(key);
    if (untilMs === undefined) return true;
    if (this.#runtime.monotonicMs() >= untilMs) this.#wanted.delete(key);
    return false;
  }

  #want(key: string, untilMs: number): void {
    this.#wanted.set(key, untilMs);
    const [oldest] = this.#wanted.keys();
    if (this.#wanted.size > REMEMBERED && oldest !== undefined) this.#wanted.delete(oldest);
  }

  /** Whether callers have been served for `TURN_MS` within one turn of the event loop. Called for each caller. */
  isTurnOver(nowMs: number): boolean {
    const isFirst = this.#turnEndsAtMs === undefined;
    this.#turnEndsAtMs ??= nowMs + TURN_MS;
    const isOver = nowMs > this.#turnEndsAtMs;
    // Start the timer again if the turn is over, in case the first timer was lost.
    if (isFirst || isOver) outsideRequests(() => this.#runtime.startTimer(() => this.#turned(), 1, false));
    return isOver;
  }

  #turned(): void {
    this.#turnEndsAtMs = undefined;
  }
}

const surroundings = new WeakMap<Session, Surroundings>();

function surroundingsOf(session: Session): Surroundings {
  let found = surroundings.get(session);
  if (found === undefined) {
    found = new Surroundings(session);
    surroundings.set(session, found);
  }
  return found;
}

/** Whether the scripts send a recall to this claim; see lua/recall. */
function isRecallable({ amount }: Claim): boolean {
  return amount % 2 === 1;
}

/** Claims to release before this process exits. */
const kept = new Set<RetainedClaim>();

function endAll(): void {
  for (const claim of kept) void claim.end();
}

/**
 * A granted claim that serves the callers of this process, one after the other, and is kept while none of them holds
 * it.
 *
 * Invariants:
 * - It is kept only if no other claim can have joined the queue without a recall: this claim was granted by the first
 *   reply, the inbox was open then, and no connection has been replaced since.
 * - It is kept only if the scripts send recalls to it, and no recall came for an earlier claim: see
 *   `Surroundings.granted`.
 * - It is kept, and reused, only within `retainMs` of its first release and with more than half of its first lease
 *   left, according to both clocks. A timer releases the claim if no caller comes.
 * - While it is kept, none of its requests is under way, because a claim that was renewed is not kept.
 * - Each lease uses the next reserved token.
 */
export class RetainedClaim implements Retainable, Occupant {
  readonly #session: Session;
  readonly #protocol: LockProtocol;
  readonly #granted: Granted;
  readonly #retainMs: number;
  readonly #surroundings: Surroundings;
  readonly #check: InboxCheck | undefined;
  readonly #reconnects: number;
  #isTurnOver = false;
  #served = 1;
  #until: Moment | undefined;
  #timer: Timer | undefined;
  #isKept = false;
  /** True if the claim can no longer be retained: it has ended, its time is over, or another caller wants the lock. */
  #isRecalled = false;

  private constructor(session: Session, protocol: LockProtocol, granted: Granted, retainMs: number) {
    this.#session = session;
    this.#protocol = protocol;
    this.#granted = granted;
    this.#retainMs = retainMs;
    this.#surroundings = surroundingsOf(session);
    // While no claim is waiting, nothing else would notice that messages do not arrive. There is no check in a cluster,
    // because the check's echo would replace that of a waiter whose channel uses the same connection.
    this.#check = session.store.shardInbox === undefined ? session.inboxCheck({}) : undefined;
    this.#check?.due();
    this.#reconnects = session.reconnects;
  }

  /**
   * Returns the retained claim for a grant. Returns undefined if others want the lock, a copy of the request may still
   * run, the grant was sent by message, or the scripts send no recalls to the claim. Also returns undefined if the
   * inbox is not open, because a recall may then have been lost.
   *
   * @param hasWaited  whether the claim had to wait
   * @param callers    how many other callers in this process are waiting for the lock
   */
  static of(
    session: Session,
    protocol: LockProtocol,
    granted: Granted,
    hasWaited: boolean,
    callers: number,
    retainMs: number,
  ): RetainedClaim | undefined {
    const isPlain = granted.mayStillRun === NOTHING_RUNS && granted.isHandedOver !== true;
    const isFree = surroundingsOf(session).granted(protocol.key, hasWaited, callers, retainMs);
    if (!isFree || !isPlain || !isRecallable(granted.claim) || !session.clientInbox.isOpen) return undefined;
    return new RetainedClaim(session, protocol, granted, retainMs);
  }

  /**
   * Returns how many tokens the next claim of a lock reserves; undefined if it must not be retained.
   *
   * @param last  the last claim of the same callers, if it could be retained
   */
  static nextBlock(session: Session, key: string, last: Retainable | undefined): number | undefined {
    if (!surroundingsOf(session).mayRetainNext(key)) return undefined;
    return last instanceof RetainedClaim ? last.#nextBlock() : FIRST_BLOCK;
  }

  /** Returns the result of `blockAfter` if all tokens have been used or the turn is over, otherwise `FIRST_BLOCK`. */
  #nextBlock(): number {
    const { claim, setAt } = this.#granted;
    if (this.#served < claim.amount && !this.#isTurnOver) return FIRST_BLOCK;
    return blockAfter(claim.amount, (this.#session.runtime.monotonicMs() - setAt.monotonicMs) * 1_000);
  }

  passOn(longestMs: number): boolean {
    const { runtime } = this.#session;
    const at = now(runtime);
    this.#until ??= { monotonicMs: at.monotonicMs + this.#retainMs, wallMs: at.wallMs + this.#retainMs };
    const leftMs = this.#leftMs(at);
    if (longestMs > 0 || leftMs <= 0) return false;
    this.#isKept = true;
    this.#session.admit(this.#granted.claim, this);
    if (this.#timer === undefined) {
      this.#timer = outsideRequests(() => runtime.startTimer(() => this.#giveBack(), leftMs, false));
      this.#session.retained ??= new Map();
      this.#session.retained.set(this.#protocol.key, this);
      if (kept.size === 0) process.on("beforeExit", endAll);
      kept.add(this);
    }
    return true;
  }

  serve(caller: Caller): boolean {
    const session = this.#session;
    const at = now(session.runtime);
    this.#isTurnOver = this.#surroundings.isTurnOver(at.monotonicMs);
    // A lease that is not renewed must last for its full length, so it needs a new claim.
    if (this.#isTurnOver || !caller.options.renew) this.#isRecalled = true;
    if (!this.#isKept || this.#leftMs(at) <= 0) {
      this.#giveBack();
      return false;
    }
    this.#isKept = false;
    const { claim } = this.#granted;
    const { protocol, options, deadline } = caller;
    caller.claim = claim;
    publishAcquire(protocol, claim, options, deadline.startedAt, session.store);
    this.#served += 1;
    // The hold replaces this object as the recipient of messages.
    serve(session, this.#granted, caller, this.#served - 1, at, this);
    return true;
  }

  /** Releases the claim now if it is kept, otherwise when its current lease is released. */
  #giveBack(): void {
    this.#isRecalled = true;
    void this.end();
  }

  recalled(): boolean {
    // If this claim was already given up, do not count the recall: this process's own next claim may have caused it.
    if (!this.#isRecalled) this.#surroundings.recalled(this.#protocol.key);
    this.#giveBack();
    // The recall shows that this claim holds the lock, so the hold need not check.
    return true;
  }

  async end(): Promise<void> {
    if (!this.#isKept) return;
    this.over();
    await cleanUp(this.#session, this.#protocol, this.#granted.claim, false);
  }

  over(): void {
    this.#isRecalled = true;
    this.#isKept = false;
    this.#timer?.cancel();
    const { retained } = this.#session;
    if (retained?.get(this.#protocol.key) === this) retained.delete(this.#protocol.key);
    if (kept.delete(this) && kept.size === 0) process.off("beforeExit", endAll);
  }

  granted(): void {
    // Ignore a second copy of the grant.
  }

  recheck(): void {
    this.recalled();
  }

  revoked(): void {
    this.#giveBack();
  }

  reconnected(): void {
    this.#giveBack();
  }

  ended(): void {
    this.#giveBack();
  }

  async close(): Promise<void> {
    await this.end();
  }

  /** Whether a recall would arrive, as far as this process knows. */
  #hears(): boolean {
    return this.#session.clientInbox.isOpen && this.#check?.isDeaf !== true;
  }

  /** How long the claim may be kept, counted from `at`, in ms; 0 or less if it may not be kept. */
  #leftMs(at: Moment): number {
    const { claim, setAt } = this.#granted;
    const isUsable = !this.#isRecalled && this.#served < claim.amount && this.#hears();
    if (!isUsable || this.#session.reconnects !== this.#reconnects || this.#until === undefined) return 0;
    return Math.min(msFrom(at, this.#until), msFrom(at, validUntil(setAt, claim.leaseMs)) - claim.leaseMs / 2);
  }
}
