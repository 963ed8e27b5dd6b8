/**
 * The public lease object. hold.ts keeps the lease alive.
 */
import type { Forced, LossReason, OverReason } from "./error-messages.js";
import { LeaseLostError } from "./errors.js";
import { aboutLock, channels, type LockEvent, type LostEvent, type ReleaseEvent } from "./events.js";
import { checkLeaseMs } from "./options.js";
import type { Grant, LockProtocol, NotHeld } from "./protocol.js";
import type { Validity } from "./time.js";

/** How a release ended: the lease was released in time, or it had expired but no one else had been granted the lock. */
export type ReleaseOutcome = "released" | "expired-unclaimed";

/**
 * A lock held for a limited time. The methods of this object extend the lease and release the lock.
 *
 * When the work is done, call `release` or dispose the lease. Until then, Holdfast renews it for as long as the process
 * runs, unless `renew` is false. If the process crashes, the server ends the lease after `leaseMs`.
 *
 * @example
 * await using lease = await holdfast.mutex("order:42").acquire({ leaseMs: 10_000 });
 * const paid = await charge(order, { signal: lease.signal });
 * lease.assertHeld(); // throws if the lock was lost in the meantime
 * await save(paid, lease.token);
 */
export class Lease implements AsyncDisposable {
  /** Name of the lock. */
  readonly name: string;
  readonly #holding: Holding;
  readonly #give: (() => Promise<Ended>) | undefined;
  #over: OverReason | undefined;
  #lost: LeaseLostError | undefined;
  /** The abort reason of the signal. The signal may abort before the lease is lost. */
  #aborted: LeaseLostError | undefined;
  #controller: AbortController | undefined;
  #release: Promise<ReleaseOutcome> | undefined;

  /**
   * Leases come from `acquire`, `tryAcquire`, `run` and `adopt`.
   * @param give  how to release the lock, if releasing `holding` is not enough
   * @internal
   */
  constructor(holding: Holding, give?: () => Promise<Ended>) {
    this.name = holding.lockName;
    this.#holding = holding;
    this.#give = give;
    holding.onLost((reason, forced) => this.#lose(reason, forced));
  }

  /** Time of the grant, according to this process's wall clock. */
  get acquiredAt(): Date {
    return new Date(this.#holding.heldSinceAtMs);
  }

  /** Fencing token: a safe integer, higher than the token of every earlier grant for the same name. */
  get token(): number {
    return this.#holding.token;
  }

  /** Owner id of the claim behind this lease. The server and `inspect` identify the holder by this id. */
  get owner(): string {
    return this.#holding.owner;
  }

  /**
   * Aborts once, with a LeaseLostError as its reason, when the lease is lost. From then on, `validForMs` returns 0.
   * Unless the lock was force-released or the server lost the lease, the signal aborts before the server can grant the
   * lock to someone else.
   *
   * If this process is paused, the signal cannot abort until the process resumes. If the host was suspended or its
   * wall clock was set forward, the signal aborts at most 1 s after the process resumes, plus any timer delay.
   * `assertHeld` and `validForMs` are correct immediately. If the lease has expired, calling either of them aborts the
   * signal.
   *
   * `release` does not abort the signal. If the `reason` of the LeaseLostError is `closing`, the lease is not lost yet:
   * this Holdfast is closing and waits up to its grace period for the work to end.
   */
  get signal(): AbortSignal {
    // The signal is created on demand because on some runtimes it costs more than the rest of an acquire.
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  /**
   * How long the holder may rely on the lease from now, in ms; 0 when it is over. Each call reads the monotonic clock
   * and the wall clock and uses the clock that leaves less time. The result is therefore correct even right after a
   * process pause, before any timer has run.
   */
  validForMs(): number {
    return this.#over === undefined ? this.#holding.validForMs() : 0;
  }

  /**
   * Throws unless the lease is still valid.
   *
   * @throws LeaseLostError  the lease is over; someone else may hold the lock
   */
  assertHeld(): void {
    if (this.validForMs() <= 0) throw this.#lost ?? this.#error(this.#over ?? "released");
  }

  /**
   * Renews the lease for at least `leaseMs` from now. Later renewals use the same length.
   *
   * @param leaseMs  whole milliseconds, 100 to 31,536,000,000
   * @throws LeaseLostError  the lease is over; someone else may hold the lock
   * @throws StoreError      the outcome is unknown; assume that the lease ends when it would have ended without this
   *                         call
   */
  async extend(leaseMs: number): Promise<void> {
    checkLeaseMs(leaseMs);
    this.assertHeld();
    const outcome = await this.#holding.extend(leaseMs);
    if (outcome !== "extended") throw this.#lost ?? this.#error(this.#over ?? "expired");
    // The lease may have ended in this process while the reply was on its way. If so, the holder has been notified of
    // the loss, so the lease stays lost.
    this.assertHeld();
  }

  /**
   * Releases the lock, and grants it to the next waiter if there is one. A second call returns the outcome of the
   * first. If another caller in this process shares the claim and takes over, no request is sent. The outcome then
   * means only that this process still considered the lease valid.
   *
   * @returns `"released"`; or `"expired-unclaimed"` if the lease was over but the lock had not been granted to anyone
   *          else, so no harm was done
   * @throws LeaseLostError  the lease was over; the work may have overlapped with another holder's
   * @throws StoreError      the outcome is unknown; the lease expires after `leaseMs` at the latest
   */
  release(): Promise<ReleaseOutcome> {
    this.#release ??= this.#releaseOnce();
    return this.#release;
  }

  /** Like `release`, but never rejects, so that a failed release cannot hide an error thrown in the block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => {});
  }

  /**
   * Ends this lease in this process and returns it as plain JSON. Another process can continue it with
   * `holdfast.adopt`, with the same token. Until then the lease is not renewed, and the time does not count towards
   * `maxHoldMs`.
   *
   * `signal` does not abort, so stop the work first. Fencing does not refuse late writes, because the token stays the
   * same.
   *
   * @throws LeaseLostError    the lease is over
   * @throws UnsupportedError  leases of this kind cannot move to another process
   */
  export(): ExportedLease {
    this.assertHeld();
    const exported = this.#holding.handOver();
    this.end("handed-over");
    return exported;
  }

  /** The holding behind a lease, for kinds that need more than the public methods. @internal */
  static holdingOf(lease: Lease): Holding {
    return lease.#holding;
  }

  /**
   * Ends the lease without a request, for example after a script has already released the lock.
   * @param outcome  outcome in the release event, if it differs from `over`
   * @internal
   */
  end(over: "released" | "handed-over", outcome: ReleaseEvent["outcome"] = over): void {
    if (this.#over === undefined) this.#publishRelease(outcome);
    this.#over ??= over;
    this.#release ??= Promise.resolve("released");
  }

  async #releaseOnce(): Promise<ReleaseOutcome> {
    const wasValid = this.validForMs() > 0;
    this.#over ??= "released";
    let outcome: ReleaseEvent["outcome"] = "unknown";
    try {
      const ended = await (this.#give === undefined ? this.#holding.release(wasValid) : this.#give());
      outcome = ended === "released" ? "released" : ended === "unclaimed" ? "expired-unclaimed" : "lost";
      if (outcome !== "lost") return outcome;
      throw this.#lost ?? this.#error(wasValid ? "server-lost" : "expired");
    } finally {
      this.#publishRelease(outcome);
    }
  }

  #lose(reason: LossReason, forced?: Forced): void {
    if (this.#over !== undefined) return;
    const error = this.#error(reason, forced);
    this.#aborted ??= error;
    if (reason === "closing") {
      this.#controller?.abort(error);
      return;
    }
    this.#over = reason;
    this.#lost = error;
    if (channels.lost.hasSubscribers) {
      const event: LostEvent = { ...this.#about(), reason, forced };
      channels.lost.publish(event);
    }
    this.#controller?.abort(error);
  }

  #error(reason: OverReason, forced?: Forced): LeaseLostError {
    return new LeaseLostError(this.name, { reason, forced, token: this.token, owner: this.owner });
  }

  #publishRelease(outcome: ReleaseEvent["outcome"]): void {
    if (!channels.release.hasSubscribers) return;
    const event: ReleaseEvent = { ...this.#about(), outcome, heldMs: this.#holding.heldMs() };
    channels.release.publish(event);
  }

  #about(): LockEvent & { readonly token: number } {
    const { kind, mode } = this.#holding;
    return { ...aboutLock({ kind, name: this.name, mode }, this.owner), token: this.token };
  }
}

/** How a release ended, as the server reports it. */
export type Ended = "released" | NotHeld;

/**
 * The hold behind a lease: a hold of one claim, or several holds that count as one. It keeps itself alive until it is
 * released, ended or lost.
 */
export interface Holding {
  readonly kind: string;
  readonly lockName: string;
  /** For a read-write lock: the side that was requested. */
  readonly mode?: "read" | "write" | undefined;
  readonly owner: string;
  readonly token: number;
  /** Time of the grant by this process's wall clock, in ms since 1970. */
  readonly heldSinceAtMs: number;
  /** Lease length that renewals request, in ms. */
  readonly leaseMs: number;

  /**
   * How long the holder may rely on the lease from now, in ms; 0 when it is over. If it has expired, this call reports
   * the loss.
   */
  validForMs(): number;

  /** How long the lock has been held, in ms. */
  heldMs(): number;

  /** Renews the lease with a new length in ms, which later renewals also use. @throws StoreError */
  extend(leaseMs: number): Promise<"extended" | NotHeld>;

  /** Releases the lock. @param isValid  whether `validForMs` just returned more than 0 @throws StoreError */
  release(isValid?: boolean): Promise<Ended>;

  /**
   * Ends the hold without a request, and returns what another process needs to continue it.
   *
   * @throws UnsupportedError
   */
  handOver(): ExportedLease;

  /** Calls `listener` once when the hold is lost, or immediately if it is already lost. */
  onLost(listener: LossListener): void;
}

/**
 * Called once when the hold is lost, with the details if it was force-released. Can also be called earlier with
 * `closing`, which means that the hold is not lost yet but must end soon.
 */
export type LossListener = (reason: LossReason, forced?: Forced) => void;

/** A lease as plain JSON, for `holdfast.adopt` in another process. */
export interface ExportedLease {
  /** Version of this format. */
  readonly version: 1;
  /** Kind of the lock. */
  readonly kind: string;
  /** Name of the lock. */
  readonly name: string;
  /** The `key` option of the lock, if it had one. */
  readonly key?: string | undefined;
  /** Owner id of the claim behind the lease. */
  readonly owner: string;
  /** Fencing token of the lease. */
  readonly token: number;
  /** Last token reserved for the claim; absent if it equals `token`. */
  readonly reservedTo?: number | undefined;
  /** Lease length that renewals request, in ms. */
  readonly leaseMs: number;
  /** Whether the lease is renewed. */
  readonly renew: boolean;
  /** Time of `maxHoldMs` that was left at the export, in ms; absent if there is no limit. It continues on adoption. */
  readonly maxHoldMs?: number | undefined;
  /** Slot numbers of the held permits; absent for kinds that do not number their permits. */
  readonly slots?: readonly number[] | undefined;
  /** The `value` of a leader; absent for all other kinds. */
  readonly value?: string | undefined;
  /** Side of a read-write lock that the lease holds; absent for all other kinds. */
  readonly mode?: "read" | "write" | undefined;
}

// --- A hold as plain JSON, for `holdfast.adopt` in another process.

/**
 * Returns the plain JSON that another process needs to continue a hold.
 *
 * @param exported  what `adopt` needs besides the name to find the same lock
 * @param token     token of the lease itself; the grant has the token that the server compares
 */
export function describeExport(
  { kind, name }: LockProtocol,
  exported: NonNullable<LockProtocol["exported"]>,
  { claim: { owner }, token: reservedTo, slots }: Grant,
  token: number,
  validity: Validity,
  { renew, maxHoldMs }: { readonly renew: boolean; readonly maxHoldMs: number },
): ExportedLease {
  const restMs = maxHoldMs - validity.heldMs();
  return {
    version: 1,
    kind,
    name,
    ...exported,
    owner,
    token,
    ...(reservedTo !== token && { reservedTo }),
    leaseMs: validity.leaseMs,
    renew,
    ...(maxHoldMs < Infinity && { maxHoldMs: Math.max(1, Math.ceil(restMs)) }),
    ...(slots.length > 0 && { slots }),
  };
}

/**
 * Sends a request that only the holder of a lease may make. If the server replies that the lease is not held, a
 * failover may have lost it. In that case, this function renews the lease, which restores it if possible, and sends the
 * request once more.
 *
 * @param ask        sends the request, which must be idempotent as long as the server knows the holder
 * @param isRefused  whether a reply says that the lease is not held
 * @returns the last reply; a second refusal has another cause, because the renewal showed that the lease is held
 * @throws LeaseLostError  the lease is over and cannot be restored
 * @throws StoreError      from `ask`; or from the renewal, in which case the request had no effect
 */
export async function askAsHolder<Answer>(
  lease: Lease,
  ask: () => Promise<Answer>,
  isRefused: (answer: Answer) => boolean,
): Promise<Answer> {
  const answer = await ask();
  if (!isRefused(answer)) return answer;
  await lease.extend(Lease.holdingOf(lease).leaseMs);
  return ask();
}
