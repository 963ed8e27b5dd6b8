/** A claim that this process keeps after its last release. See docs/adr/146. */
import { type Caller, serve } from "../core/batch.js";
import { publishAcquire } from "../core/events.js";
import { type Granted, type LockProtocol, NOTHING_RUNS } from "../core/protocol.js";
import { cleanUp } from "../core/release.js";
import type { Retainable } from "../core/retention.js";
import { outsideRequests, type Runtime, type Timer } from "../core/runtime.js";
import type { Occupant, Session } from "../core/session.js";
import { type Moment, msFrom, now, validUntil } from "../core/time.js";

/**
 * How many tokens the first claim reserves. The number is odd, and so are all that follow from it. That tells the scripts that
 * the claim may be retained, see lua/recall.
 */
export const FIRST_BLOCK = 31;
/** The largest number of tokens that a claim reserves. */
const LARGEST_BLOCK = 65_535;

/**
 * Returns how many tokens to reserve after a claim that has used all of its `amount` tokens within `passedUs`: about twice as
 * many, but never more than the microseconds that have passed. So tokens do not outrun the server's clock, see docs/adr/060.
 */
export function blockAfter(amount: number, passedUs: number): number {
  const twice = amount * 2 + 1;
  if (twice <= Math.min(passedUs, LARGEST_BLOCK)) return twice;
  return amount <= passedUs ? amount : FIRST_BLOCK;
}

/**
 * For how long one turn of the event loop may serve callers, in ms. Then the next caller asks the server. Callers that do nothing
 * but short work without I/O would otherwise keep recalls, timers and the renewals of other leases from running.
 */
const TURN_MS = 20;

/** What the claims of one session share. */
class Surroundings {
  /** Number of reconnects of both connections. A recall may be lost while the inbox reconnects. */
  reconnects = 0;
  readonly #runtime: Runtime;
  #turnEndsAtMs: number | undefined;

  constructor({ store, runtime }: Session) {
    this.#runtime = runtime;
    store.onReconnect(() => {
      this.reconnects += 1;
    });
  }

  /** Whether callers were served for `TURN_MS` and the event loop has not turned since. Called for each caller. */
  isTurnOver(nowMs: number): boolean {
    const isFirst = this.#turnEndsAtMs === undefined;
    this.#turnEndsAtMs ??= nowMs + TURN_MS;
    const isOver = nowMs > this.#turnEndsAtMs;
    // Also restarts a timer that was lost.
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

/** Claims to give back before this process exits. */
const kept = new Set<RetainedClaim>();

function endAll(): void {
  for (const claim of kept) void claim.end();
}

/**
 * A granted claim that serves the callers of this process, one after the other, and is kept while none of them holds it.
 *
 * Invariants:
 * - It is kept only if no other claim can be in the queue without having sent a recall: it was granted by the first reply, the
 *   inbox was open then, and no connection has been replaced since.
 * - It is kept, and reused, only within `retainMs` of its first release and with more than half of its first lease left. Both
 *   clocks must say so at that moment. The timer only gives the claim back if no caller comes.
 * - While it is kept, none of its requests is under way, because a claim that was renewed is not kept.
 * - Each lease has the next of the reserved tokens.
 */
export class RetainedClaim implements Retainable, Occupant {
  readonly #session: Session;
  readonly #protocol: LockProtocol;
  readonly #granted: Granted;
  readonly #retainMs: number;
  readonly #surroundings: Surroundings;
  readonly #reconnects: number;
  #isTurnOver = false;
  #served = 1;
  #until: Moment | undefined;
  #timer: Timer | undefined;
  #isKept = false;
  /** It must not be kept again: another caller wants the lock, its time is over, or it has ended. */
  #isRecalled = false;

  private constructor(session: Session, protocol: LockProtocol, granted: Granted, retainMs: number) {
    this.#session = session;
    this.#protocol = protocol;
    this.#granted = granted;
    this.#retainMs = retainMs;
    this.#surroundings = surroundingsOf(session);
    this.#reconnects = this.#surroundings.reconnects;
  }

  /**
   * Returns the claim of a grant, unless a copy of its request may still run, the grant was sent by message, or an earlier recall
   * may be lost because the inbox is not open.
   */
  static of(session: Session, protocol: LockProtocol, granted: Granted, retainMs: number): RetainedClaim | undefined {
    const isPlain = granted.mayStillRun === NOTHING_RUNS && granted.isHandedOver !== true;
    return isPlain && session.clientInbox.isOpen ? new RetainedClaim(session, protocol, granted, retainMs) : undefined;
  }

  /** How many tokens the next claim reserves: more only if this claim has used all of its own, or did not stand still. */
  get nextBlock(): number {
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
      this.#timer = outsideRequests(() => runtime.startTimer(() => this.recalled(), leftMs, false));
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
      this.recalled();
      return false;
    }
    this.#isKept = false;
    const { claim } = this.#granted;
    const { protocol, options, deadline } = caller;
    caller.claim = claim;
    publishAcquire(protocol, claim, options, deadline.startedAt, session.store);
    this.#served += 1;
    // The hold takes the place of this object as the recipient of messages.
    serve(session, this.#granted, caller, this.#served - 1, at, this);
    return true;
  }

  recalled(): void {
    this.#isRecalled = true;
    void this.end();
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
    // A second copy of the grant.
  }

  recheck(): void {
    this.recalled();
  }

  revoked(): void {
    this.recalled();
  }

  reconnected(): void {
    this.recalled();
  }

  ended(): void {
    this.recalled();
  }

  async close(): Promise<void> {
    await this.end();
  }

  /** For how long the claim may be kept from `at`, in ms; 0 if it may not. */
  #leftMs(at: Moment): number {
    const { claim, setAt } = this.#granted;
    const isUsable = !this.#isRecalled && this.#served < claim.amount && this.#session.clientInbox.isOpen;
    if (!isUsable || this.#surroundings.reconnects !== this.#reconnects || this.#until === undefined) return 0;
    return Math.min(msFrom(at, this.#until), msFrom(at, validUntil(setAt, claim.leaseMs)) - claim.leaseMs / 2);
  }
}
