/**
 * A batch is a granted claim that serves several callers of this process, one after the other.
 */

import { publishingEnds } from "./events.js";
import { type Hold, hold, type SharedClaim } from "./hold.js";
import type { ResolvedOptions } from "./options.js";
import type { Granted, LockProtocol, TimedOut } from "./protocol.js";
import type { Runtime } from "./runtime.js";
import type { Session } from "./session.js";
import { Deadline, type DeadlineEnd, type Moment, msFrom, now, validUntil } from "./time.js";
import { confirmAtMs, type Unconfirmed } from "./watchdog.js";

/** Maximum number of leases per grant, which is also the number of tokens that a grant reserves. */
export const BLOCK = 32;

/**
 * Like `BLOCK`, but for a crowd: many local callers of a busy lock. If they hold the lock only briefly, 32 holds take
 * no longer than the hand-over that follows, so with `BLOCK` the lock would be idle half the time.
 *
 * Other claims reserve fewer tokens, because tokens are derived from the server's clock: a single fast caller that
 * reserved 128 tokens per grant could use tokens faster than that clock advances.
 */
export const CROWD_BLOCK = 128;

/**
 * Whether a batch of `size` callers is a crowd: it uses all `block` leases of the grant, or has at least 64 callers
 * (half of `CROWD_BLOCK`).
 */
export function isCrowd(size: number, block: number): boolean {
  return size >= Math.min(block, CROWD_BLOCK / 2);
}

/**
 * Time in ms after which a batch stops so that other processes get a turn. A hand-over adds only about 1% to this time.
 */
const BATCH_MS = 20;

/**
 * A granted claim and the callers that it serves, one after the other: see local-queue.ts.
 *
 * Invariants:
 * - There is one lease at a time.
 * - Each lease gets the next token that the grant reserved.
 * - No lease begins once the claim is no longer valid or the batch is over.
 */
export class Batch implements SharedClaim, Unconfirmed {
  readonly #session: Session;
  readonly #granted: Granted;
  #callers: readonly Caller[];
  readonly #onLeft: (left: readonly Caller[]) => void;
  readonly #startedAtMs: number;
  readonly #validUntil: Moment;
  #next = 0;
  #served = 0;
  /** See `Unconfirmed`. */
  readonly confirmAtMs: number;
  readonly #isWatched: boolean;

  /**
   * @param callers  the callers in the order of their calls, at most as many as the claim can serve
   * @param onLeft   called with the callers that are still waiting if the batch ends before it has served all of them
   */
  constructor(
    session: Session,
    granted: Granted,
    callers: readonly Caller[],
    onLeft: (left: readonly Caller[]) => void,
  ) {
    this.#session = session;
    this.#granted = granted;
    this.#callers = callers;
    this.#onLeft = onLeft;
    this.#startedAtMs = session.runtime.monotonicMs();
    const { claim, setAt, provisionalMs = claim.leaseMs } = granted;
    this.#validUntil = validUntil(setAt, provisionalMs);
    this.confirmAtMs = confirmAtMs(session.runtime, granted);
    this.#isWatched = provisionalMs < claim.leaseMs && callers.length > 1;
    // Register the batch once, not each of its leases, because most leases end before the confirmation is due.
    if (this.#isWatched) session.confirmations.add(this);
  }

  /** Called when the confirmation is due. The current hold of the claim sends the confirmation. */
  confirmNow(): void {
    this.#session.recheckClaim(this.#granted.claim);
  }

  /** True if no caller is waiting in this batch. */
  get isServed(): boolean {
    return this.#left().length === 0;
  }

  /** Begins the next lease. @returns false if no caller is left */
  serveNext(at: Moment = now(this.#session.runtime)): boolean {
    let caller = this.#callers[this.#next];
    while (caller?.hasLeft === true) caller = this.#callers[++this.#next];
    if (caller === undefined) return false;
    this.#next += 1;
    this.#served += 1;
    const isLast = this.#next === this.#callers.length;
    if (isLast) this.#forget();
    serve(this.#session, this.#granted, caller, this.#served - 1, at, isLast ? undefined : this);
    return true;
  }

  passOn(longestMs: number): boolean {
    if (this.#next >= this.#callers.length) return false;
    const at = now(this.#session.runtime);
    return this.#mayGoOn(longestMs, at) && this.serveNext(at);
  }

  over(): void {
    const left = this.end();
    if (left.length > 0) this.#onLeft(left);
  }

  /** Ends the batch. @returns the callers that were not served */
  end(): readonly Caller[] {
    const left = this.#left();
    this.#forget();
    return left;
  }

  /** Drops the callers so that a reference to one lease, or to the queue, does not keep all other leases in memory. */
  #forget(): void {
    this.#callers = [];
    this.#next = 0;
    if (this.#isWatched) this.#session.confirmations.remove(this);
  }

  #left(): Caller[] {
    return this.#callers.slice(this.#next).filter(({ hasLeft }) => !hasLeft);
  }

  /**
   * Whether the batch may serve another caller: no holder has requested a longer lease, the batch's time is not up, and
   * more than half of the lease is left.
   */
  #mayGoOn(longestMs: number, at: Moment): boolean {
    const { claim, provisionalMs } = this.#granted;
    return (
      longestMs <= claim.leaseMs &&
      at.monotonicMs - this.#startedAtMs < BATCH_MS &&
      // No need to check whether the claim was confirmed: `BATCH_MS` passes long before a confirmation is due.
      msFrom(at, this.#validUntil) > (provisionalMs ?? claim.leaseMs) / 2
    );
  }
}

/**
 * Begins the lease of one caller.
 *
 * @param place        number of earlier leases of the claim; each lease gets the next reserved token
 * @param at           when the lease begins
 * @param sharedClaim  the claim, if it serves other callers after this lease
 */
export function serve(
  session: Session,
  granted: Granted,
  caller: Caller,
  place: number,
  at: Moment,
  sharedClaim?: SharedClaim,
): void {
  caller.leave();
  const waitedMs = caller.deadline.waitedMs(at.monotonicMs);
  const call = caller.deadline.startedAt;
  const { claim, token } = granted;
  const own = { ...granted, token: token + claim.amount - 1, waitedMs, call };
  caller.ends.held(hold(session, caller.protocol, own, caller.options, token + place, sharedClaim, at));
}

/** Stands in for the claim of a caller that has none. */
export const NOBODY = { owner: "" };

/** Callbacks that settle a caller. Exactly one of them is called, once. */
export interface CallerEnds {
  readonly held: (hold: Hold) => void;
  readonly timedOut: (end: TimedOut) => void;
  readonly failed: (error: unknown) => void;
}

/** One call to `acquire` in a local queue. */
export class Caller {
  readonly protocol: LockProtocol;
  readonly options: ResolvedOptions;
  readonly ends: CallerEnds;
  readonly deadline: Deadline;
  /** The claim that was pending when the call began, or else the claim that was created for the call. */
  claim: { readonly owner: string } = NOBODY;
  #hasLeft = false;

  constructor(
    runtime: Runtime,
    protocol: LockProtocol,
    options: ResolvedOptions,
    ends: CallerEnds,
    onEnd: (end: DeadlineEnd) => void,
  ) {
    this.protocol = protocol;
    this.options = options;
    this.deadline = new Deadline(runtime, options, onEnd);
    const { startedAt } = this.deadline;
    this.ends = publishingEnds(ends, {
      protocol,
      options,
      runtime,
      claim: () => this.claim,
      startedAt: () => startedAt,
    });
  }

  /** Whether the caller has stopped waiting: it was served, it gave up, or its signal has aborted in this turn. */
  get hasLeft(): boolean {
    return this.#hasLeft || this.options.signal?.aborted === true;
  }

  /**
   * Whether the call began at or before the given moment. Both clocks must agree, because the monotonic clock may have
   * stopped and the wall clock may have been set.
   */
  hadCalledBy({ monotonicMs, wallMs }: Moment): boolean {
    const { startedAt } = this.deadline;
    return startedAt.monotonicMs <= monotonicMs && startedAt.wallMs <= wallMs;
  }

  /** Stops waiting. */
  leave(): void {
    this.#hasLeft = true;
    this.deadline.stop();
  }
}
