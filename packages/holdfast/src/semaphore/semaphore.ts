/** The semaphore: options, lock and lease. */
import { acquire, run, tryAcquire } from "../core/acquire.js";
import type { Holder } from "../core/errors.js";
import type { Hold } from "../core/hold.js";
import { describe, type Inspection, type WaitingClaim } from "../core/inspection.js";
import type { LockKeys } from "../core/keys.js";
import { Lease } from "../core/lease.js";
import { Lock } from "../core/lock.js";
import {
  ACQUIRE_OPTIONS,
  type AcquireOptions,
  checkWhole,
  NONE,
  type ResolvedOptions,
  type RunOptions,
  resolve,
  type TryAcquireOptions,
} from "../core/options.js";
import { parseOwner } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import type { Store } from "../core/store.js";
import { type PermitsProtocol, permitsProtocol } from "../permits/protocol.js";

/** Maximum number of permits of a semaphore, and of one lease. */
export const MOST_PERMITS = 1_000_000;
/** A lease of more permits than this gets no slot numbers. A caller that counts megabytes, for example, needs none. */
const MOST_SLOTS = 1_000;

/** The configuration of a semaphore, which must be the same in every process. */
export interface SemaphoreOptions {
  /**
   * The number of permits. The first acquire of a name stores this number on the server, where it stays until 10
   * minutes after the last use (30 days if `resize` was called). Until then, acquires that declare a number that was
   * never in effect fail with a CapacityMismatchError. A whole number from 1 to 1,000,000.
   */
  readonly permits: number;
}

/** Options of `tryAcquire`. */
export interface SemaphoreTryAcquireOptions extends TryAcquireOptions {
  /**
   * The number of permits to take, all or none. A whole number from 1 to the configured number of permits.
   * @default 1
   */
  readonly permits?: number | undefined;
}

/** Options of `acquire` and `run`. */
export interface SemaphoreAcquireOptions extends AcquireOptions, SemaphoreTryAcquireOptions {}

/** A lease on one or more permits, which are all released or lost together. */
export class SemaphoreLease extends Lease {
  /** The number of permits that this lease holds. */
  readonly permits: number;

  /**
   * The slot numbers of the permits, smallest first. No two live leases share a number. Each permit gets the smallest
   * free number, so all numbers are below the capacity and can identify workers, ports or directories. Empty for a
   * lease of more than 1,000 permits.
   */
  readonly slots: readonly number[];

  /** @internal */
  constructor(hold: Hold) {
    super(hold);
    this.permits = hold.grant.claim.amount;
    this.slots = hold.grant.slots;
  }
}

/** A holder of permits. */
export interface SemaphoreHolder extends Holder {
  /** The number of permits that it holds. */
  readonly permits: number;
  /** The slot numbers of the permits, smallest first; empty for more than 1,000 permits. */
  readonly slots: readonly number[];
}

/**
 * The state of a semaphore, as returned by `inspect`. A snapshot: the state may have changed by the time you read it.
 */
export interface SemaphoreInspection extends Inspection {
  /** At most 1,000 holders, ordered by the end of their lease, earliest first. */
  readonly holders: readonly SemaphoreHolder[];
  /** The first waiters, in queue order, with the number of permits that each requests. */
  readonly waiters: readonly (WaitingClaim & { readonly permits: number })[];
  /**
   * The number of permits on the server, set by `resize` or the first acquire; if the server stores no number, the one
   * declared here.
   */
  readonly capacity: number;
  /** The number of permits held. Can temporarily exceed `capacity` after `resize` lowers it. */
  readonly used: number;
}

const SEMAPHORE_OPTIONS = /* @__PURE__ */ ACQUIRE_OPTIONS.concat("permits");

/**
 * Limits how many permits all processes together can hold at a time. One server enforces the limit, so a failover can
 * break it.
 *
 * Callers wait in a queue on the server, first come, first served: a caller that wants many permits is never overtaken
 * by callers that want few. Every permit belongs to a lease, which is renewed while its holder's process runs. So the
 * permits of a crashed process become free when its lease ends, and no caller can release permits that it does not
 * hold.
 *
 * @example
 * const connections = holdfast.semaphore("connections", { permits: 10 });
 * await connections.run(async (lease) => {
 *   await fetchAll({ signal: lease.signal });
 * }, { permits: 2 });
 */
export class Semaphore extends Lock<SemaphoreLease> {
  readonly #permits: PermitsProtocol;
  readonly #declared: number;

  /** @internal */
  constructor(session: Session, protocol: PermitsProtocol, defaults: ResolvedOptions, declared: number) {
    super(session, protocol, defaults, (hold) => new SemaphoreLease(hold));
    this.#permits = protocol;
    this.#declared = declared;
  }

  /**
   * Waits until enough permits are free and all earlier callers have been served, then holds the permits. Takes one
   * round trip if they are available immediately.
   *
   * @throws AcquireTimeoutError    not granted within `waitMs`; nothing is held; `holder` is the holder whose
   *                                lease ends first
   * @throws CapacityMismatchError  the declared number was never in effect, or more permits are requested than
   *                                exist after a `resize`; nothing is held
   * @throws RangeError             more permits requested than the semaphore was configured with; nothing was sent
   * @throws the other errors of `Lock.acquire`
   */
  override async acquire(options: SemaphoreAcquireOptions = NONE): Promise<SemaphoreLease> {
    return acquire(this.session, this.protocol, this.#resolve(options), this.make);
  }

  /**
   * Acquires permits only if enough are free now and no other caller is waiting. Takes one round trip.
   *
   * @returns null if too few permits are free, or if other callers are waiting
   * @throws CapacityMismatchError  the declared number was never in effect, or more permits are requested than
   *                                exist after a `resize`; nothing is held
   * @throws RangeError             more permits requested than the semaphore was configured with; nothing was sent
   * @throws the other errors of `Lock.tryAcquire`
   */
  override async tryAcquire(options: SemaphoreTryAcquireOptions = NONE): Promise<SemaphoreLease | null> {
    return tryAcquire(this.session, this.protocol, this.#resolve(options), this.make);
  }

  /** Runs `work` while holding permits, like `Lock.run`. @throws as `acquire`; in that case, `work` was not called */
  override async run<Result>(
    work: (lease: SemaphoreLease) => Result | Promise<Result>,
    options: SemaphoreAcquireOptions & RunOptions = NONE,
  ): Promise<Result> {
    return run(this.session, work, options, (given) => this.acquire(given));
  }

  /**
   * Changes the number of permits for all processes, immediately. If the number grows, the same call grants the new
   * permits to waiters. If it shrinks, holders keep their permits, and no permits are granted until the held permits
   * fit within the new number.
   *
   * Processes that are configured with an earlier number of this semaphore keep working. A number that was never in
   * effect is still refused. The server forgets the new number 30 days after the last use, so configure your processes
   * with it before then.
   *
   * @param permits  a whole number from 1 to 1,000,000
   * @throws TypeError, RangeError  invalid `permits`; nothing was sent
   * @throws StoreError  outcome unknown; calling it again is safe
   * @throws ClosedError  this Holdfast instance was closed
   */
  async resize(permits: number): Promise<void> {
    checkPermits(permits, MOST_PERMITS);
    this.session.assertOpen(this.name);
    await this.#permits.resize(permits, this.session.newRequestId(this.name), this.session.commandTimeoutMs);
  }

  /**
   * Returns the number of permits on the server, or the number declared here if the server stores no number.
   *
   * @throws StoreError, ClosedError
   */
  async capacity(): Promise<number> {
    this.session.assertOpen(this.name);
    const { capacity } = await this.#permits.inspect(undefined, this.session.commandTimeoutMs);
    return capacity ?? this.#declared;
  }

  /**
   * Returns the capacity, the holders and the waiters, with their permits. Read-only.
   *
   * @throws StoreError, ClosedError
   */
  override async inspect(): Promise<SemaphoreInspection> {
    this.session.assertOpen(this.name);
    const state = await this.#permits.inspect(undefined, this.session.commandTimeoutMs);
    const described = await describe(this.session, this.protocol, state);
    return {
      ...described,
      holders: described.holders.map((holder, i) => ({
        ...holder,
        permits: state.holders[i]?.weight ?? 0,
        slots: state.holders[i]?.slots ?? [],
      })),
      waiters: described.waiters.map((waiter) => ({ ...waiter, permits: parseOwner(waiter.owner)?.amount ?? 1 })),
      capacity: state.capacity ?? this.#declared,
      used: state.used,
    };
  }

  #resolve(options: SemaphoreAcquireOptions): ResolvedOptions {
    if (options === NONE || options === null || typeof options !== "object") return resolve(options, this.defaults);
    const { permits = 1, ...rest } = options;
    checkPermits(permits, this.#declared);
    return { ...resolve(rest, this.defaults, SEMAPHORE_OPTIONS), amount: permits };
  }
}

/** The lock protocol of one semaphore. */
export function semaphoreProtocol(place: {
  readonly store: Store;
  readonly name: string;
  readonly keys: LockKeys;
  readonly inbox: string;
  readonly declared: number;
}): PermitsProtocol {
  return permitsProtocol({ ...place, kind: "semaphore", numbered: MOST_SLOTS });
}

/** @throws TypeError, RangeError  `permits` is not a whole number from 1 to `most` */
export function checkPermits(permits: unknown, most: number): number {
  checkWhole("permits", permits, 1, most);
  return permits as number; // just checked
}
