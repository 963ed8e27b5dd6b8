/** Redisson's `RSemaphore`: a plain count of permits, to which Holdfast adds leases. */
import type { Holder, Inspection } from "holdfast";
import { checkWhole, describe, type Hold, Lease } from "holdfast/internal";
import { checkRecheckMs, MOST_PERMITS, PermitsLock, permitsParts, type RecheckOptions } from "./permits-lock.js";
import type { PermitsPlace } from "./permits-place.js";
import { type RedissonSemaphoreProtocol, redissonSemaphoreProtocol } from "./semaphore-protocol.js";

/** Options of `trySetPermits`. */
export interface SetPermitsOptions {
  /**
   * How long the semaphore lives. After that it is gone with all its permits, including those that are held. Whole
   * milliseconds, 1 to 31,536,000,000.
   * @default forever
   */
  readonly ttlMs?: number | undefined;
}

/** A lease on one or more permits, which are renewed and released together. */
export class RedissonSemaphoreLease extends Lease {
  /** The number of permits that this lease holds. */
  readonly permits: number;

  /** @internal */
  constructor(hold: Hold) {
    super(hold);
    this.permits = hold.grant.claim.amount;
  }
}

/** The state of a semaphore, as returned by `inspect`. A snapshot: the state may have changed by the time you read it. */
export interface RedissonSemaphoreInspection extends Inspection {
  /** At most 1,000 Holdfast holders, ordered by the end of their lease, earliest first. Java holders are unknown. */
  readonly holders: readonly (Holder & { readonly permits: number })[];
  /** The number of free permits; undefined if the semaphore does not exist. */
  readonly free: number | undefined;
}

const LONGEST_MS = 31_536_000_000;

/**
 * Redisson's `RSemaphore`: Java services and Node take permits from one count. This holds on one server and between
 * failovers.
 *
 * The format does not record holders. It stores only the number of free permits, and a release adds permits without
 * checking that the caller held any. So permits that Java holds have no lease, and those of a crashed Java process are
 * lost until they are added again.
 *
 * Holdfast adds leases: it records the permits that it takes in separate keys and renews them while the holder lives.
 * After a lease has ended, the next Holdfast client that requests or waits for permits puts the lease's permits back.
 * While no Holdfast client uses the semaphore, they are not put back.
 *
 * A lease cannot protect against other clients:
 *
 * - If a client releases permits that it never held, more permits than intended can be held, and no holder is notified.
 * - If the semaphore is deleted, its leases are lost at their next renewal. If Java creates it again before that, the
 *   leases count as permits of the new semaphore.
 *
 * Waiters in one process are served in order; there is no order between processes. A message wakes them, and they ask
 * again every `recheckMs` in any case. Tokens are the server's clock in microseconds. They order the grants of Holdfast
 * unless that clock is set back. Java has no tokens.
 *
 * Algorithm: Redisson's, a count and a channel that notifies waiters, plus a record of the Holdfast holders
 * (docs/redisson-permits.md).
 */
export class RedissonSemaphore extends PermitsLock<RedissonSemaphoreLease> {
  readonly #protocol: RedissonSemaphoreProtocol;

  /** @internal */
  constructor(place: PermitsPlace, options: RecheckOptions = {}) {
    const protocol = redissonSemaphoreProtocol(place);
    const make = (held: Hold): RedissonSemaphoreLease => new RedissonSemaphoreLease(held);
    super(permitsParts(place, protocol, make, checkRecheckMs(options)), MOST_PERMITS);
    this.#protocol = protocol;
  }

  /**
   * Sets the number of permits, unless it is already set.
   *
   * @param permits  a whole number from 0 to 2,147,483,647
   * @returns whether this call set the number
   * @throws StoreError   outcome unknown; or the key belongs to an object of a different type
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  invalid number or option; nothing was sent
   */
  async trySetPermits(permits: number, { ttlMs }: SetPermitsOptions = {}): Promise<boolean> {
    checkWhole("permits", permits, 0, MOST_PERMITS);
    if (ttlMs !== undefined) checkWhole("ttlMs", ttlMs, 1, LONGEST_MS);
    return this.once((request, timeoutMs) => this.#protocol.trySetPermits(permits, ttlMs ?? 0, request, timeoutMs));
  }

  /**
   * Adds permits. A negative number removes permits, even more than are free.
   *
   * @param permits  a whole number from -2,147,483,647 to 2,147,483,647
   * @throws as `trySetPermits`
   */
  async addPermits(permits: number): Promise<void> {
    checkWhole("permits", permits, -MOST_PERMITS, MOST_PERMITS);
    await this.once((request, timeoutMs) => this.#protocol.add(permits, false, request, timeoutMs));
  }

  /**
   * Adds permits like Redisson's `release`. It does not check that the caller holds any, and ends no lease. To release
   * the permits of a lease, call `lease.release()`.
   *
   * @param permits  a whole number from 1 to 2,147,483,647
   * @throws as `trySetPermits`
   */
  async release(permits = 1): Promise<void> {
    checkWhole("permits", permits, 1, MOST_PERMITS);
    await this.once((request, timeoutMs) => this.#protocol.add(permits, false, request, timeoutMs));
  }

  /** Like `release`, but only if the semaphore exists. @returns whether it exists @throws as `release` */
  async releaseIfExists(permits = 1): Promise<boolean> {
    checkWhole("permits", permits, 1, MOST_PERMITS);
    return this.once((request, timeoutMs) => this.#protocol.add(permits, true, request, timeoutMs));
  }

  /**
   * Removes all free permits permanently. No lease holds them, and no lease ends. If the number of free permits is
   * negative, sets it to 0.
   *
   * @returns the number of permits that were free; negative if more had been removed than were free
   * @throws as `trySetPermits`
   */
  async drainPermits(): Promise<number> {
    return this.once((request, timeoutMs) => this.#protocol.drain(request, timeoutMs));
  }

  /**
   * Returns the number of free permits: 0 without a semaphore, negative if more were removed than were free.
   *
   * @throws StoreError, ClosedError
   */
  async availablePermits(): Promise<number> {
    return this.counted((timeoutMs) => this.#protocol.available(timeoutMs));
  }

  /**
   * Returns the number of free permits, and the Holdfast holders with the number of permits that each has. Read-only.
   *
   * @throws StoreError, ClosedError
   */
  override async inspect(): Promise<RedissonSemaphoreInspection> {
    this.session.assertOpen(this.name);
    const state = await this.#protocol.inspect(undefined, this.session.commandTimeoutMs);
    const described = await describe(this.session, this.#protocol, state);
    const holders = described.holders.map((holder, i) => ({ ...holder, permits: state.held[i] ?? 0 }));
    return { ...described, holders, free: state.free };
  }
}
