/**
 * Keeps one hold alive, and notices its end: renewals, and a timer for whatever comes first, once that is near.
 *
 * Invariants: a renewal that was not answered is no loss; the truth is computed from the clocks at the call, and
 * timers only make sure that somebody who does not call is told too; after `stop` no timer runs and nothing is sent.
 */

import type { LossReason } from "./errors.js";
import type { Grant, LockProtocol, NotHeld } from "./protocol.js";
import type { Renewable } from "./renewal.js";
import { answerInMs, publishRenew, RenewalSchedule } from "./renewal.js";
import type { Timer } from "./runtime.js";
import type { Session } from "./session.js";
import { type Moment, now, Term, validUntil } from "./time.js";
import { confirmAtMs, LOOK_MS, type Unconfirmed, type Watched } from "./watchdog.js";

/** The watchdog comes by in time before what is further off, though it may be late itself. */
const NEAR_MS = 2 * LOOK_MS;
/** Of leases that are renewed together: at the look that is nearest to a third of the lease. */
const EARLY_MS = LOOK_MS / 2;
const BULK_LEASE_MS = 15_000;

/** How a hold is kept. */
export interface HoldOptions {
  readonly renew: boolean;
  readonly maxHoldMs: number;
}

/** How the lease of a hold begins. */
export interface FirstLease {
  readonly leaseMs: number;
  /** When the server can have begun it at the earliest. */
  readonly setAt: Moment;
  /** See `Granted.provisionalMs`. */
  readonly provisionalMs: number | undefined;
  /** Whether its batch confirms the claim when that is due. */
  readonly isWatched: boolean;
  /** See `HoldFacts.heldFrom`. */
  readonly heldFrom: Moment | undefined;
}

/** What is kept. */
export interface Kept {
  /** As the server has it now. */
  readonly grant: Grant;
  readonly lockName: string;
  readonly leaseMs: number;
  readonly owner: string;
  readonly token: number;
  /** What is left of it; it ends if that is nothing. */
  validForMs(): number;
  lose(reason: LossReason): void;
}

/** See the file header. One for each hold. */
export class Renewer implements Watched, Renewable, Unconfirmed {
  readonly term: Term;
  readonly #session: Session;
  readonly #protocol: LockProtocol;
  readonly #options: HoldOptions;
  readonly #kept: Kept;
  readonly #renewal: RenewalSchedule;
  #isOver = false;
  /** It does nothing by itself any more; once it is over it does not in any case. */
  #isResting = false;
  #timer: Timer | undefined;
  #timerDueAtMs = 0;
  #isAsGranted = true;
  #mayBePutBack = false;
  /** How long the server has granted it for, in ms, as long as the holder has not confirmed it; see docs/adr/130. */
  #provisionalMs: number | undefined;
  /** See `Unconfirmed`; Infinity where nothing but a renewal is due. */
  readonly confirmAtMs: number;

  readonly #heldFrom: Moment;

  constructor(session: Session, protocol: LockProtocol, options: HoldOptions, lease: FirstLease, kept: Kept) {
    this.#session = session;
    this.#protocol = protocol;
    this.#options = options;
    this.#kept = kept;
    this.#provisionalMs = lease.provisionalMs;
    const { leaseMs, setAt, provisionalMs = leaseMs, heldFrom = now(session.runtime) } = lease;
    this.#heldFrom = heldFrom;
    this.term = new Term(session.runtime, setAt, leaseMs, provisionalMs, heldFrom);
    this.#renewal = new RenewalSchedule(session.runtime, this.#firstAtMs(lease));
    this.confirmAtMs = this.#isShort(lease) ? confirmAtMs(session.runtime, lease) : Infinity;
  }

  /** Whether the server has granted less than the lease that renewals go by, and no batch looks after that. */
  #isShort({ leaseMs, provisionalMs = leaseMs, isWatched }: FirstLease): boolean {
    return provisionalMs < leaseMs && this.#options.renew && !isWatched;
  }

  /** A lease that is no longer than the grant is confirmed by its first renewal, and a shorter grant before there is one. */
  #firstAtMs({ leaseMs, setAt, provisionalMs = leaseMs }: FirstLease): number {
    return this.#options.renew && provisionalMs >= leaseMs ? setAt.monotonicMs + leaseMs / 3 : Infinity;
  }

  /** From now on it is watched, and renewed if that was asked for. */
  start(): void {
    this.#session.watchdog.join(this.#kept.grant.claim.number, this);
    if (this.#provisionalMs !== undefined && !this.#options.renew) void this.#renew();
    if (this.confirmAtMs < Infinity) this.#session.confirmations.add(this);
    this.#arm(this.#heldFrom);
  }

  /** For the confirmations. */
  confirmNow(): void {
    this.check();
  }

  /** Asks for the whole lease if the grant is provisional, without waiting for the answer. */
  confirm(): void {
    if (this.#provisionalMs === undefined) return;
    this.#protocol.extend(this.#kept.grant, this.term.leaseMs, this.#session.commandTimeoutMs).catch(() => {
      // Then it lasts for as long as it was granted, as if this had not been sent.
    });
  }

  /** For the watchdog, once a second for each lease that is held: most of the time nothing is near. */
  look(at: Moment, isCrowded: boolean): void {
    const leftMs = this.term.leftMs(at);
    if (leftMs <= 0) {
      this.#kept.validForMs();
      return;
    }
    // A timer that should have fired before the last look was lost, as in a test that fakes timers and restores the real ones.
    if (this.#timer !== undefined && at.monotonicMs <= this.#timerDueAtMs + LOOK_MS) return;
    const endsInMs = Math.min(leftMs, this.#options.maxHoldMs - this.term.heldMs(at.monotonicMs));
    const dueInMs = this.#renewal.dueInMs(at.monotonicMs);
    if (Math.min(endsInMs, dueInMs) > NEAR_MS) return;
    if (!(isCrowded && this.#leftToOthers(endsInMs, dueInMs))) this.#arm(at);
  }

  /** Whether nothing comes soon but its renewal, which is one of many. */
  #leftToOthers(endsInMs: number, dueInMs: number): boolean {
    const { bulkRenewal } = this.#session;
    if (!this.#options.renew || this.term.leaseMs < BULK_LEASE_MS || this.#protocol.renewAll === undefined)
      return false;
    if (endsInMs <= NEAR_MS || !bulkRenewal.isPossible || this.#provisionalMs !== undefined) return false;
    if (dueInMs <= EARLY_MS) {
      this.#renewal.begun();
      this.term.asked(this.term.leaseMs);
      bulkRenewal.add(this);
    }
    return true;
  }

  /** For the renewal of many. */
  get renewed(): Renewable["renewed"] {
    if (this.#isResting) return undefined;
    return { protocol: this.#protocol, grant: this.#kept.grant, leaseMs: this.term.leaseMs };
  }

  extended(until: Moment, at: Moment): void {
    this.#renewal.settled();
    if (this.#isResting) return;
    this.term.extended(until, at);
    this.#renewal.succeeded(this.term.leaseMs, at.monotonicMs);
    publishRenew(this.#protocol, this.#kept, undefined, () => this.#kept.validForMs());
  }

  open(): void {
    this.#renewal.settled();
    if (!this.#isResting) void this.#renew();
  }

  /** The hold is over. */
  stop(): void {
    this.#isOver = true;
    this.rest();
  }

  /** Nothing is done by itself any more; its holder may still extend it, and so put it back. */
  rest(): void {
    this.#isResting = true;
    this.#timer?.cancel();
    if (this.#provisionalMs !== undefined) this.#session.confirmations.remove(this);
    this.#session.watchdog.leave(this.#kept.grant.claim.number, this);
  }

  /** A connection has come back: a renewal that failed meanwhile need not wait for its turn. */
  renewNow(connection: "commands" | "inbox"): void {
    if (!this.#isKept) return;
    // The server may be another one now, which has lost it: the sooner it is asked, the sooner it is put back.
    const mayHaveLost = connection === "commands" && this.#protocol.reclaim !== undefined;
    if (this.#renewal.renewNow(mayHaveLost)) this.#arm();
    // A forced release may have been told meanwhile. The watchdog comes by within a second, and asks for many at a time.
    else if (connection === "inbox") this.#renewal.renewNow(true);
  }

  /** It may have been released by force without our hearing of it: a renewal finds that out. */
  check(): void {
    if (this.#isKept && this.#renewal.renewNow(true)) this.#arm();
  }

  get #isKept(): boolean {
    return (this.#options.renew || this.#provisionalMs !== undefined) && !this.#isResting;
  }

  /** The server has extended it: from now on it is renewed as any other lease, or not at all. */
  #renewedFor(leaseMs: number): void {
    if (this.#provisionalMs !== undefined) this.#session.confirmations.remove(this);
    this.#provisionalMs = undefined;
    this.#renewal.succeeded(this.#options.renew ? leaseMs : Infinity);
  }

  /** From now on it may hold something else than it was granted, and a server that has lost it would not know what. */
  changes(): void {
    this.#isAsGranted = false;
  }

  /** Whether a request that puts it back may still be under way. */
  get mayBePutBack(): boolean {
    return this.#mayBePutBack;
  }

  /**
   * Puts it back on a server that has lost it in a failover; only while it is still good, since once it may be over, others
   * may have been granted.
   *
   * @throws StoreError
   */
  async reclaim(leaseMs: number, timeoutMs: number): Promise<boolean> {
    if (this.#protocol.reclaim === undefined || !this.#isAsGranted || this.term.leftMs() <= 0) return false;
    try {
      return (await this.#protocol.reclaim(this.#kept.grant, leaseMs, timeoutMs)) === "reclaimed";
    } catch (error) {
      this.#mayBePutBack = true;
      throw error;
    }
  }

  /** Its holder asks for a lease of another length, which renewals go on with. @throws StoreError */
  async extend(leaseMs: number): Promise<"extended" | NotHeld> {
    const outcome = await this.#extend(leaseMs, this.#session.commandTimeoutMs, () => !this.#isOver);
    if (outcome === "extended") {
      this.term.leaseMs = leaseMs;
      this.#renewedFor(leaseMs);
      this.#arm();
    } else {
      this.#refused();
    }
    return outcome;
  }

  /**
   * A timer for whatever comes first: the end of validity, the longest hold, the next renewal. Before it is near there is none:
   * most holds are over by then, and where many are held, timers are most of what they take.
   */
  #arm(at: Moment = now(this.#session.runtime)): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#isResting) return;
    const inMs = Math.min(
      this.term.leftMs(at),
      this.#options.maxHoldMs - this.term.heldMs(at.monotonicMs),
      this.#renewal.dueInMs(at.monotonicMs),
    );
    if (inMs > NEAR_MS) return;
    this.#timerDueAtMs = at.monotonicMs + inMs;
    this.#timer = this.#session.runtime.startTimer(() => this.#tick(), Math.max(0, inMs), false);
  }

  #tick(): void {
    this.#timer = undefined;
    if (this.#kept.validForMs() <= 0) return;
    if (this.term.heldMs() >= this.#options.maxHoldMs) {
      this.#kept.lose("max-hold");
      return;
    }
    if (this.#renewal.dueInMs() <= 0) void this.#renew();
    this.#arm();
  }

  async #renew(): Promise<void> {
    this.#renewal.begun();
    let outcome: "extended" | NotHeld | undefined;
    let failure: unknown;
    const { leaseMs } = this.term;
    const timeoutMs = answerInMs(this.#provisionalMs ?? leaseMs, this.#session.commandTimeoutMs);
    try {
      outcome = await this.#extend(leaseMs, timeoutMs, () => !this.#isResting);
    } catch (error) {
      failure = error;
    }
    this.#renewal.settled();
    if (this.#isResting) {
      if (this.#isOver && outcome !== undefined && outcome !== "extended") this.#refused();
      return;
    }
    if (outcome === undefined) this.#renewal.failed(this.#provisionalMs ?? this.term.leaseMs);
    else if (outcome === "extended") this.#renewedFor(this.term.leaseMs);
    else this.#refused();
    publishRenew(this.#protocol, this.#kept, failure, () => this.#kept.validForMs());
    this.#arm();
  }

  /** @param isWanted  whether it would still be put back for somebody, and not given back while the answer was on its way */
  async #extend(leaseMs: number, timeoutMs: number, isWanted: () => boolean): Promise<"extended" | NotHeld> {
    const sentAt = now(this.#session.runtime);
    this.term.asked(leaseMs);
    let outcome = await this.#protocol.extend(this.#kept.grant, leaseMs, timeoutMs);
    if (outcome !== "extended" && isWanted() && (await this.reclaim(leaseMs, timeoutMs))) outcome = "extended";
    if (outcome === "extended") this.term.extended(validUntil(sentAt, leaseMs), now(this.#session.runtime));
    return outcome;
  }

  /** The server says that the claim does not hold. A forced release would have been told by a message. */
  #refused(): void {
    // Who holds by the same claim since has to ask as well.
    if (this.#isOver) this.#session.recheckClaim(this.#kept.grant.claim);
    else this.#kept.lose(this.term.leftMs() <= 0 ? "expired" : "server-lost");
  }
}
