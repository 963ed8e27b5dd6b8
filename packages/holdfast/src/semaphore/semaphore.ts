/** Permits, so many at a time: options, lock and lease. */
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
  resolve,
  type TryAcquireOptions,
} from "../core/options.js";
import { parseOwner } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import type { Store } from "../core/store.js";
import { type PermitsProtocol, permitsProtocol } from "../permits/protocol.js";

/** The most permits of a semaphore, and of one lease. */
export const MOST_PERMITS = 1_000_000;
/** Leases of more permits have no slot numbers: who counts in megabytes does not number them. */
const MOST_SLOTS = 1_000;

/** How a semaphore is configured: the same in every process. */
export interface SemaphoreOptions {
  /**
   * How many permits there are. More lets more holders in at a time. The first acquire of a name stores it; until
   * it is forgotten (10 minutes after the last use, or 30 days after `resize`), another number is refused. A whole
   * number from 1 to 1 000 000.
   */
  readonly permits: number;
}

/** How to acquire permits without waiting. */
export interface SemaphoreTryAcquireOptions extends TryAcquireOptions {
  /**
   * How many permits to take, all or none. A whole number from 1 to what the semaphore was configured with.
   * @default 1
   */
  readonly permits?: number | undefined;
}

/** How to acquire permits, and how long to try. */
export interface SemaphoreAcquireOptions extends AcquireOptions, SemaphoreTryAcquireOptions {}

/** Permits held for a time. All of them end together. */
export class SemaphoreLease extends Lease {
  /** How many permits are held. */
  readonly permits: number;

  /**
   * Numbers of the permits, smallest first: no two leases that are held have one in common, and a permit that is
   * taken gets the smallest that is free, so they stay below the capacity and can name workers, ports or
   * directories. Empty for a lease of more than 1 000 permits.
   */
  readonly slots: readonly number[];

  /** Leases come from the verbs of a Semaphore. @internal */
  constructor(hold: Hold) {
    super(hold);
    this.permits = hold.grant.claim.amount;
    this.slots = hold.grant.slots;
  }
}

/** Somebody who holds permits. */
export interface SemaphoreHolder extends Holder {
  readonly permits: number;
  readonly slots: readonly number[];
}

/** What `inspect` tells about a semaphore. A snapshot: it may have changed when you read it. */
export interface SemaphoreInspection extends Inspection {
  /** The first 1 000, the one whose lease ends first at the front. */
  readonly holders: readonly SemaphoreHolder[];
  readonly waiters: readonly (WaitingClaim & { readonly permits: number })[];
  /** How many permits there are: as resized, as declared by who came first, or else as declared here. */
  readonly capacity: number;
  /** How many are held. More than `capacity` for a while, if it was made smaller. */
  readonly used: number;
}

const SEMAPHORE_OPTIONS: readonly string[] = [...ACQUIRE_OPTIONS, "permits"];

/**
 * At most so many permits are held at a time across processes, on one server, between failovers.
 *
 * Who asks waits in a queue on the server, first come, first served: a caller that wants many is not overtaken by
 * others that want few. Every permit is part of a lease that is renewed while its holder lives, so the permits of a
 * process that died come back when its lease ends, and nobody can give back what it does not hold.
 */
export class Semaphore extends Lock<SemaphoreLease> {
  readonly #permits: PermitsProtocol;
  readonly #declared: number;

  /** Semaphores come from the factory of a Holdfast. @internal */
  constructor(session: Session, protocol: PermitsProtocol, defaults: ResolvedOptions, declared: number) {
    super(session, protocol, defaults, (hold) => new SemaphoreLease(hold));
    this.#permits = protocol;
    this.#declared = declared;
  }

  /**
   * Waits until so many permits are free and everybody before us was served, then holds them. One round trip if
   * that is now.
   *
   * @throws AcquireTimeoutError    after `waitMs`; nothing is held; `holder` is the one whose lease ends first
   * @throws CapacityMismatchError  other processes count on another number of permits; nothing is held
   * @throws RangeError             more permits than the semaphore was configured with; nothing was sent
   * @throws as `Lock.acquire` otherwise
   */
  override async acquire(options: SemaphoreAcquireOptions = NONE): Promise<SemaphoreLease> {
    return acquire(this.session, this.protocol, this.#resolve(options), this.make);
  }

  /**
   * Takes permits only if so many are free now and nobody waits. One round trip.
   *
   * @returns null if not
   * @throws CapacityMismatchError  other processes count on another number of permits; nothing is held
   * @throws RangeError             more permits than the semaphore was configured with; nothing was sent
   * @throws as `Lock.tryAcquire` otherwise
   */
  override async tryAcquire(options: SemaphoreTryAcquireOptions = NONE): Promise<SemaphoreLease | null> {
    return tryAcquire(this.session, this.protocol, this.#resolve(options), this.make);
  }

  /** Runs `work` while holding permits; otherwise as `Lock.run`. @throws as `acquire`, and then `work` was not called */
  override async run<Result>(
    work: (lease: SemaphoreLease) => Result | Promise<Result>,
    options: SemaphoreAcquireOptions = NONE,
  ): Promise<Result> {
    return run(() => this.acquire(options), work);
  }

  /**
   * Changes how many permits there are, for everybody and at once. More are given to those who wait, in this one
   * call. With fewer, whoever holds keeps what it has, and nobody is granted until what is held fits.
   *
   * Processes that were configured with another number go on; one that was never in force is still refused. The new
   * number is forgotten 30 days after the last use: configure processes with it before.
   *
   * @param permits  a whole number from 1 to 1 000 000
   * @throws StoreError  outcome unknown; calling it again is safe
   * @throws ClosedError  this Holdfast was closed
   */
  async resize(permits: number): Promise<void> {
    checkPermits(permits, MOST_PERMITS);
    this.session.assertOpen(this.name);
    await this.#permits.resize(permits, this.session.newRequestId(this.name), this.session.commandTimeoutMs);
  }

  /** How many permits there are: what the server has on record, or else what was declared here. @throws StoreError, ClosedError */
  async capacity(): Promise<number> {
    this.session.assertOpen(this.name);
    const { capacity } = await this.#permits.inspect(undefined, this.session.commandTimeoutMs);
    return capacity ?? this.#declared;
  }

  /** How many permits there are, who holds how many, and who waits for how many. Changes nothing. @throws StoreError, ClosedError */
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

/** The protocol of the semaphore of that name. */
export function semaphoreProtocol(place: {
  readonly store: Store;
  readonly name: string;
  readonly keys: LockKeys;
  readonly inbox: string;
  readonly declared: number;
}): PermitsProtocol {
  return permitsProtocol({ ...place, kind: "semaphore", numbered: MOST_SLOTS });
}

/** @throws TypeError, RangeError  unless it is a whole number from 1 to `most` */
export function checkPermits(permits: unknown, most: number): number {
  checkWhole("permits", permits, 1, most);
  return permits as number; // just checked
}
