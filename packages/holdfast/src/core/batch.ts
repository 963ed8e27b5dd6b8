/**
 * A granted claim that serves several callers of this process, one after the other.
 */

import { tellingEnds } from "./events.js";
import { type Hold, hold, type SharedClaim } from "./hold.js";
import type { ResolvedOptions } from "./options.js";
import type { Granted, LockProtocol, TimedOut } from "./protocol.js";
import type { Runtime } from "./runtime.js";
import type { Session } from "./session.js";
import { Deadline, type DeadlineEnd, type Moment, msFrom, now, validUntil } from "./time.js";
import { confirmAtMs, type Unconfirmed } from "./watchdog.js";

/** How many leases a grant is good for, and so how many tokens it reserves. */
export const BLOCK = 32;

/**
 * The same, in a crowd: 32 empty sections take no longer than the hand-over that follows. Reserved for every claim, they would let the
 * tokens of one that is alone, and quick, outrun the clock from which they rise.
 */
export const CROWD_BLOCK = 128;

/** Whether a grant that was good for `block` leases, and begins a batch of so many, has met a crowd: its batch is full, or half of 128. */
export function isCrowd(size: number, block: number): boolean {
  return size >= Math.min(block, CROWD_BLOCK / 2);
}

/** A batch that has taken so long goes on after the others: a hand-over costs a hundredth of it. */
const BATCH_MS = 20;

/**
 * A claim that was granted, and the callers whom it serves, one after the other: see local-queue.ts.
 *
 * Invariants: one lease at a time; each with the next of the tokens that the grant has reserved; none begins when the
 * claim is no longer good, and none after the turn is over.
 *

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
   * @param callers  as many as the claim is good for at most, in the order in which they came
   * @param onLeft   told when it is over before all were served; with those who still wait
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
    // One entry for all of its leases, most of which are over by then.
    if (this.#isWatched) session.confirmations.add(this);
  }

  /** For the confirmations: whoever holds by the claim asks. */
  confirmNow(): void {
    this.#session.recheckClaim(this.#granted.claim);
  }

  /** Whether nobody waits in it any more. */
  get isServed(): boolean {
    return this.#left().length === 0;
  }

  /** Begins the next lease. @returns false if nobody is left */
  serveNext(): boolean {
    let caller = this.#callers[this.#next];
    while (caller?.hasLeft === true) caller = this.#callers[++this.#next];
    if (caller === undefined) return false;
    this.#next += 1;
    this.#served += 1;
    const isLast = this.#next === this.#callers.length;
    if (isLast) this.#forget();
    serve(this.#session, this.#granted, caller, this.#served - 1, isLast ? undefined : this);
    return true;
  }

  passOn(longestMs: number): boolean {
    return this.#next < this.#callers.length && this.#mayGoOn(longestMs) && this.serveNext();
  }

  over(): void {
    const left = this.end();
    if (left.length > 0) this.#onLeft(left);
  }

  /** Nobody is served any more. @returns who was not */
  end(): readonly Caller[] {
    const left = this.#left();
    this.#forget();
    return left;
  }

  /** Whoever keeps one lease, or the queue, must not keep the leases of all others and what listens to them. */
  #forget(): void {
    this.#callers = [];
    this.#next = 0;
    if (this.#isWatched) this.#session.confirmations.remove(this);
  }

  #left(): Caller[] {
    return this.#callers.slice(this.#next).filter(({ hasLeft }) => !hasLeft);
  }

  /** Who comes next gets a lease of the length it asked for, less what the batch has taken; and not a longer one. */
  #mayGoOn(longestMs: number): boolean {
    const { claim, provisionalMs } = this.#granted;
    const at = now(this.#session.runtime);
    return (
      longestMs <= claim.leaseMs &&
      at.monotonicMs - this.#startedAtMs < BATCH_MS &&
      // Without asking whether the claim was confirmed meanwhile: a batch lasts much shorter than that.
      msFrom(at, this.#validUntil) > (provisionalMs ?? claim.leaseMs) / 2
    );
  }
}

/**
 * Begins the lease of one caller.
 *
 * @param place        how many leases of the claim have begun before: each has the next of the tokens that the grant has reserved
 * @param sharedClaim  the claim, if it serves others after this lease
 */
export function serve(
  session: Session,
  { claim, token, slots, setAt, provisionalMs, isHandedOver, mayStillRun }: Granted,
  caller: Caller,
  place: number,
  sharedClaim?: SharedClaim,
): void {
  caller.leave();
  const waitedMs = caller.deadline.waitedMs();
  const call = caller.deadline.startedAt;
  const lastToken = token + claim.amount - 1;
  const granted = { claim, token: lastToken, slots, setAt, provisionalMs, isHandedOver, waitedMs, call, mayStillRun };
  caller.ends.held(hold(session, caller.protocol, granted, caller.options, token + place, sharedClaim));
}

/** Where no claim can be made any more. */
export const NOBODY = { owner: "" };

/** How to tell a caller; one of them is called, once. */
export interface CallerEnds {
  readonly held: (hold: Hold) => void;
  readonly timedOut: (end: TimedOut) => void;
  readonly failed: (error: unknown) => void;
}

/** One call of `acquire`, in a local queue. */
export class Caller {
  readonly protocol: LockProtocol;
  readonly options: ResolvedOptions;
  readonly ends: CallerEnds;
  readonly deadline: Deadline;
  /** The one that was on its way when it called. */
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
    this.ends = tellingEnds(ends, { protocol, options, runtime, claim: () => this.claim, startedAt: () => startedAt });
  }

  /** It waits no longer: it was served, or has given up, or does so in this turn because its signal has just aborted. */
  get hasLeft(): boolean {
    return this.#hasLeft || this.options.signal?.aborted === true;
  }

  /** Whether it had called by that moment, as both clocks say: one of them may have stood still, or been set. */
  hadCalledBy({ monotonicMs, wallMs }: Moment): boolean {
    const { startedAt } = this.deadline;
    return startedAt.monotonicMs <= monotonicMs && startedAt.wallMs <= wallMs;
  }

  /** Waits no longer. */
  leave(): void {
    this.#hasLeft = true;
    this.deadline.stop();
  }
}
