/**
 * The renewer of one hold: renews its lease and detects its end.
 */

import type { LossReason } from "./errors.js";
import type { Grant, LockProtocol, NotHeld } from "./protocol.js";
import type { Renewable } from "./renewal.js";
import { answerInMs, publishRenew, RenewalSchedule } from "./renewal.js";
import type { Timer } from "./runtime.js";
import type { Session } from "./session.js";
import { type Moment, now, Validity, validUntil } from "./time.js";
import { CHECK_MS, confirmAtMs, type Unconfirmed, type Watched } from "./watchdog.js";

/**
 * Only events within this time, in ms, need a timer. For later events, the watchdog checks again in time, even if it
 * runs late.
 */
const NEAR_MS = 2 * CHECK_MS;
/** How early a lease may be renewed in bulk, in ms, so that the nearest check of the watchdog renews it. */
const EARLY_MS = CHECK_MS / 2;
/** Shortest lease that is renewed in bulk, in ms. */
const BULK_LEASE_MS = 15_000;

/** The options that say how a hold is kept alive. See `TryAcquireOptions`. */
export interface HoldOptions {
  /** Whether the lease is renewed. */
  readonly renew: boolean;
  /** Maximum time to hold the lock, in ms, or Infinity. */
  readonly maxHoldMs: number;
}

/** The first lease of a hold. */
export interface FirstLease {
  /** Lease length that renewals request, in ms. */
  readonly leaseMs: number;
  /** The earliest moment at which the server could have begun the lease. */
  readonly setAt: Moment;
  /** How long the lease lasts unless it is confirmed, in ms; see `Granted.provisionalMs`. */
  readonly provisionalMs: number | undefined;
  /** Whether the hold's batch confirms the claim when the confirmation is due. */
  readonly isWatched: boolean;
  /** When the hold began; set only if the clocks had just been read. See `HoldFacts.heldFrom`. */
  readonly heldFrom: Moment | undefined;
}

/** The hold that a renewer keeps alive. */
export interface RenewedHold {
  /** The current grant on the server. */
  readonly grant: Grant;
  readonly lockName: string;
  /** Lease length that renewals request, in ms. */
  readonly leaseMs: number;
  readonly owner: string;
  readonly token: number;
  /** Returns how long the holder may rely on the lease, in ms. If that is 0, ends the hold as lost. */
  validForMs(): number;
  /** Ends the hold as lost. */
  lose(reason: LossReason): void;
}

/**
 * Keeps one hold alive with renewals, and detects its end.
 *
 * Invariants:
 * - A renewal without a reply is not a loss.
 * - Validity is computed from the clocks at each call. Timers only notify holders that make no call.
 * - After `stop` no timer runs, and the renewer sends nothing.
 */
export class Renewer implements Watched, Renewable, Unconfirmed {
  /** How long the lease is valid, and how long it has been held. */
  readonly validity: Validity;
  readonly #session: Session;
  readonly #protocol: LockProtocol;
  readonly #options: HoldOptions;
  readonly #kept: RenewedHold;
  readonly #renewal: RenewalSchedule;
  #isOver = false;
  /** Whether the renewer has stopped renewing and watching. Always true once the hold is over. */
  #isResting = false;
  #timer: Timer | undefined;
  #timerDueAtMs = 0;
  #isAsGranted = true;
  #mayBePutBack = false;
  /** Length of a grant that is not confirmed yet, in ms; undefined once it is confirmed. See docs/adr/130. */
  #provisionalMs: number | undefined;
  /** When the grant must be confirmed; see `Unconfirmed`. Infinity if no separate confirmation is needed. */
  readonly confirmAtMs: number;

  /** 0 after each change of the schedule; see `Watched`. */
  quietUntilMs = 0;
  readonly #heldFrom: Moment;

  /** Sends nothing until `start` is called. */
  constructor(session: Session, protocol: LockProtocol, options: HoldOptions, lease: FirstLease, kept: RenewedHold) {
    this.#session = session;
    this.#protocol = protocol;
    this.#options = options;
    this.#kept = kept;
    this.#provisionalMs = lease.provisionalMs;
    const { runtime } = session;
    const { leaseMs, setAt, provisionalMs = leaseMs, isWatched, heldFrom = now(runtime) } = lease;
    this.#heldFrom = heldFrom;
    this.validity = new Validity(runtime, setAt, leaseMs, provisionalMs, heldFrom);
    // The first renewal also confirms a grant that covers the full lease. A shorter grant is confirmed earlier, by its
    // batch or by this renewer, and its renewals start with that confirmation.
    const isShort = provisionalMs < leaseMs;
    const firstAtMs = options.renew && !isShort ? setAt.monotonicMs + leaseMs / 3 : Infinity;
    this.#renewal = new RenewalSchedule(runtime, firstAtMs);
    this.confirmAtMs = options.renew && isShort && !isWatched ? confirmAtMs(runtime, lease) : Infinity;
  }

  /** Starts watching the hold and, if the options say so, renewing it. */
  start(): void {
    this.#session.watchdog.join(this.#kept.grant.claim.number, this);
    if (this.#provisionalMs !== undefined && !this.#options.renew) void this.#renew();
    if (this.confirmAtMs < Infinity) this.#session.confirmations.add(this);
    this.#arm(this.#heldFrom);
  }

  /** Confirms the grant with a renewal. `Confirmations` calls this when the confirmation is due. */
  confirmNow(): void {
    this.check();
  }

  /** Requests the full lease if the grant is provisional, without waiting for the reply. */
  confirm(): void {
    if (this.#provisionalMs === undefined) return;
    this.#protocol.extend(this.#kept.grant, this.validity.leaseMs, this.#session.commandTimeoutMs).catch(() => {
      // The lease then ends with the provisional grant, as it would have without this request.
    });
  }

  /** Called by the watchdog. */
  checkClocks(at: Moment, isCrowded: boolean): void {
    const leftMs = this.validity.leftMs(at);
    if (leftMs <= 0) {
      this.#kept.validForMs();
      return;
    }
    // If the timer should have fired before the last check, it is lost: a test may fake timers and then restore the
    // real ones.
    if (this.#timer !== undefined && at.monotonicMs <= this.#timerDueAtMs + CHECK_MS) return;
    const endsInMs = Math.min(leftMs, this.#options.maxHoldMs - this.validity.heldMs(at.monotonicMs)) - NEAR_MS;
    const dueInMs = this.#renewal.dueInMs(at.monotonicMs);
    // Whether the bulk renewal can renew this lease, which then needs no timer of its own.
    const isBulk =
      isCrowded &&
      endsInMs > 0 &&
      this.#options.renew &&
      this.leaseMs >= BULK_LEASE_MS &&
      this.#provisionalMs === undefined &&
      this.#protocol.renewAll !== undefined &&
      this.#session.bulkRenewal.isPossible;
    const quietMs = Math.min(endsInMs, dueInMs - (isBulk ? EARLY_MS : NEAR_MS));
    if (quietMs > 0) {
      this.quietUntilMs = Math.floor(at.monotonicMs + quietMs);
    } else if (isBulk) {
      this.#renewal.begun();
      this.validity.asked(this.leaseMs);
      this.#session.bulkRenewal.add(this, at.monotonicMs);
    } else {
      this.#arm(at);
    }
  }

  get protocol(): LockProtocol {
    return this.#protocol;
  }

  get grant(): Grant {
    return this.#kept.grant;
  }

  get leaseMs(): number {
    return this.validity.leaseMs;
  }

  get isNeeded(): boolean {
    return !this.#isResting;
  }

  /** Called when the bulk renewal has renewed the lease. */
  extended(until: Moment, at: Moment): void {
    this.#renewal.settled();
    this.quietUntilMs = 0;
    if (this.#isResting) return;
    this.validity.extended(until, at);
    this.#renewal.succeeded(this.validity.leaseMs, at.monotonicMs);
    publishRenew(this.#protocol, this.#kept);
  }

  /** Called if the bulk renewal has not renewed the lease. Sends a separate request. */
  open(): void {
    this.#renewal.settled();
    if (!this.#isResting) void this.#renew();
  }

  /** Stops for good, because the hold is over. */
  stop(): void {
    this.#isOver = true;
    this.rest();
  }

  /** Stops renewing and watching. The holder can still extend the lease, and thereby restore it. */
  rest(): void {
    this.#isResting = true;
    this.#timer?.cancel();
    if (this.#provisionalMs !== undefined) this.#session.confirmations.remove(this);
    this.#session.watchdog.leave(this.#kept.grant.claim.number, this);
  }

  /** Called after a reconnect. If a renewal failed in the meantime, makes the next one due immediately. */
  renewNow(connection: "commands" | "inbox"): void {
    if (!this.#isKept) return;
    // Another server may have taken over and lost the lease. A renewal restores it.
    const mayHaveLost = connection === "commands" && this.#protocol.reclaim !== undefined;
    this.quietUntilMs = 0;
    if (this.#renewal.renewNow(mayHaveLost)) this.#arm();
    // The notice of a forced release may have been lost, so renew soon. This needs no timer: the watchdog checks
    // within a second and can renew many leases together.
    else if (connection === "inbox") this.#renewal.renewNow(true);
  }

  /**
   * Renews now, because the notice of a forced release may have been lost, and the reply to the renewal shows whether
   * the lock is still held.
   */
  check(): void {
    if (this.#isKept && this.#renewal.renewNow(true)) this.#arm();
  }

  get #isKept(): boolean {
    return (this.#options.renew || this.#provisionalMs !== undefined) && !this.#isResting;
  }

  /**
   * Called after the server has extended the lease. The grant is now confirmed. Further renewals follow only if the
   * options ask for them.
   */
  #renewedFor(leaseMs: number): void {
    if (this.#provisionalMs !== undefined) this.#session.confirmations.remove(this);
    this.#provisionalMs = undefined;
    this.#renewal.succeeded(this.#options.renew ? leaseMs : Infinity);
  }

  /** Records that from now on the hold may differ from its grant, so it cannot be restored after a failover. */
  changes(): void {
    this.#isAsGranted = false;
  }

  /** Whether a request that restores the lease may still be under way. */
  get mayBePutBack(): boolean {
    return this.#mayBePutBack;
  }

  /**
   * Restores the lease on a server that lost it in a failover. Does so only while the lease is valid, because other
   * claims may be granted once it has expired.
   *
   * @param leaseMs    length of the restored lease, in ms
   * @param timeoutMs  timeout of the request, in ms
   * @returns whether the server has restored it
   * @throws StoreError  no reply in time; the request may still be under way
   */
  async reclaim(leaseMs: number, timeoutMs: number): Promise<boolean> {
    if (this.#protocol.reclaim === undefined || !this.#isAsGranted || this.validity.leftMs() <= 0) return false;
    try {
      return (await this.#protocol.reclaim(this.#kept.grant, leaseMs, timeoutMs)) === "reclaimed";
    } catch (error) {
      this.#mayBePutBack = true;
      throw error;
    }
  }

  /** Extends the lease for its holder. Renewals use the new length from now on. @throws StoreError */
  async extend(leaseMs: number): Promise<"extended" | NotHeld> {
    const outcome = await this.#extend(leaseMs, this.#session.commandTimeoutMs, () => !this.#isOver);
    if (outcome === "extended") {
      this.validity.leaseMs = leaseMs;
      this.#renewedFor(leaseMs);
      this.#arm();
    } else {
      this.#refused();
    }
    return outcome;
  }

  /**
   * Starts a timer for the next event: the end of validity, `maxHoldMs`, or the next renewal. Starts no timer while the
   * event is far off, because most holds end earlier, and with many leases timers are the largest cost.
   */
  #arm(at: Moment = now(this.#session.runtime)): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#isResting) return;
    this.quietUntilMs = 0;
    const inMs = Math.min(
      this.validity.leftMs(at),
      this.#options.maxHoldMs - this.validity.heldMs(at.monotonicMs),
      this.#renewal.dueInMs(at.monotonicMs),
    );
    if (inMs > NEAR_MS) return;
    this.#timerDueAtMs = at.monotonicMs + inMs;
    this.#timer = this.#session.runtime.startTimer(() => this.#tick(), Math.max(0, inMs), false);
  }

  #tick(): void {
    this.#timer = undefined;
    if (this.#kept.validForMs() <= 0) return;
    if (this.validity.heldMs() >= this.#options.maxHoldMs) {
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
    const { leaseMs } = this.validity;
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
    if (outcome !== undefined && outcome !== "extended") {
      this.#refused();
      return;
    }
    if (outcome === undefined) this.#renewal.failed(this.#provisionalMs ?? this.validity.leaseMs);
    else this.#renewedFor(this.validity.leaseMs);
    publishRenew(this.#protocol, this.#kept, failure);
    this.#arm();
  }

  /**
   * @param isWanted  returns whether the hold still needs the lease; if so, a lease that the server lost is restored
   */
  async #extend(leaseMs: number, timeoutMs: number, isWanted: () => boolean): Promise<"extended" | NotHeld> {
    const sentAt = now(this.#session.runtime);
    this.validity.asked(leaseMs);
    let outcome = await this.#protocol.extend(this.#kept.grant, leaseMs, timeoutMs);
    if (outcome !== "extended" && isWanted() && (await this.reclaim(leaseMs, timeoutMs))) outcome = "extended";
    if (outcome === "extended") this.validity.extended(validUntil(sentAt, leaseMs), now(this.#session.runtime));
    return outcome;
  }

  /**
   * Handles a reply that says that the claim does not hold the lock. Never reports a forced release, because the server
   * sends a separate message for it.
   */
  #refused(): void {
    // A later hold may use the same claim, so make it check its lease too.
    if (this.#isOver) this.#session.recheckClaim(this.#kept.grant.claim);
    else this.#kept.lose(this.validity.leftMs() <= 0 ? "expired" : "server-lost");
  }
}
