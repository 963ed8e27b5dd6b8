/** Redisson's `RPermitExpirableSemaphore`: permits with ids and leases that Java and Node both see. */
import type { Inspection } from "holdfast";
import { checkWhole, describe, type Hold, insist, Lease, show } from "holdfast/internal";
import {
  type ExpirableProtocol,
  expirableProtocol,
  type PermitCounts,
  type PermitRelease,
} from "./expirable-protocol.js";
import { checkPermitId, firstPermitId, permitIdsOf } from "./permit-ids.js";
import { checkRecheckMs, MOST_PERMITS, PermitsLock, permitsParts, type RecheckOptions } from "./permits-lock.js";
import type { PermitsPlace } from "./permits-place.js";
import type { SetPermitsOptions } from "./semaphore.js";

/** A lease on one or more permits, which are renewed and released together. */
export class RedissonPermitLease extends Lease {
  /**
   * Ids of the permits, 32 hexadecimal digits each, as in Java. The first one is `owner`. Any client that knows an id
   * can release that permit; this lease is then lost at its next renewal.
   */
  readonly permitIds: readonly string[];

  /** @internal */
  constructor(hold: Hold) {
    super(hold);
    this.permitIds = permitIdsOf(hold.grant.claim);
  }
}

/** The state of the semaphore, as returned by `inspect`. A snapshot: the state may have changed by the time you read it. */
export interface PermitInspection extends Inspection {
  /** The number of free permits, not counting permits whose lease has ended but that have not been taken back yet. */
  readonly free: number;
}

/** Maximum number of permits per lease. One request carries all their ids. */
const MOST_IDS = 1_000;
const LONGEST_MS = 31_536_000_000;

/**
 * Redisson's `RPermitExpirableSemaphore`: Java services and Node take permits from one count, each with a lease that
 * all clients see. This holds on one server and between failovers.
 *
 * When a client of either system asks for permits, those whose leases have ended are taken back first. Holdfast renews
 * its leases while their holders live. Redisson does not renew its leases. They end at the time that Java set, or
 * never. Any client that knows the id of a permit can release it or change the end of its lease, so an id can be passed
 * from one system to the other. Holdfast does not renew a lease that was passed to it by id.
 *
 * Waiters in one process are served in order; there is no order between processes. A waiter asks again when a message
 * arrives, when the first lease ends, and every `recheckMs`. Redisson computes the end of a lease with the Java
 * service's clock, and Holdfast with the server's clock. Tokens are the server's clock in microseconds. They order the
 * grants of Holdfast unless that clock is set back. Java has no tokens.
 *
 * Algorithm: Redisson's, a count, a sorted set of ids by the end of their leases, and a channel that notifies waiters
 * (docs/redisson-permits.md).
 */
export class RedissonPermitExpirableSemaphore extends PermitsLock<RedissonPermitLease> {
  readonly #protocol: ExpirableProtocol;

  /** @internal */
  constructor(place: PermitsPlace, options: RecheckOptions = {}) {
    const protocol = expirableProtocol(place);
    const make = (held: Hold): RedissonPermitLease => new RedissonPermitLease(held);
    const ownerOf = (claimNumber: number): string => firstPermitId(place.scope.ownerOf(claimNumber));
    super({ ...permitsParts(place, protocol, make, checkRecheckMs(options)), ownerOf }, MOST_IDS);
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
   * Changes the total number of permits, including those that are held. If more permits than that are held, none are
   * granted until enough have been released.
   *
   * @param permits  a whole number from 0 to 2,147,483,647
   * @throws as `trySetPermits`
   */
  async setPermits(permits: number): Promise<void> {
    checkWhole("permits", permits, 0, MOST_PERMITS);
    await this.once((request, timeoutMs) => this.#protocol.setPermits(permits, request, timeoutMs));
  }

  /**
   * Adds permits. A negative number removes permits, even more than are free.
   *
   * @param permits  a whole number from -2,147,483,647 to 2,147,483,647
   * @throws as `trySetPermits`
   */
  async addPermits(permits: number): Promise<void> {
    checkWhole("permits", permits, -MOST_PERMITS, MOST_PERMITS);
    await this.once((request, timeoutMs) => this.#protocol.addPermits(permits, request, timeoutMs));
  }

  /** Returns the number of free permits; negative if fewer were set than are held. @throws as `trySetPermits` */
  async availablePermits(): Promise<number> {
    return (await this.#counts()).free;
  }

  /** Returns the number of permits that clients of both systems hold. @throws as `trySetPermits` */
  async acquiredPermits(): Promise<number> {
    return (await this.#counts()).held;
  }

  /** Returns the total number of permits, free and held; 0 if it was never set. @throws as `trySetPermits` */
  async getPermits(): Promise<number> {
    const { free, held } = await this.#counts();
    return free + held;
  }

  /**
   * Releases a permit by its id, no matter which client acquired it. To release a lease of Holdfast, call
   * `lease.release()`.
   *
   * @param id  permit id as in Java, 32 hexadecimal digits
   * @returns `"released"`; `"late"` if the lease had ended and this call took the permit back, which Java reports as a
   *          failure; `"not-held"` if no client holds the permit
   * @throws StoreError   outcome unknown; or the key belongs to an object of a different type
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  invalid id; nothing was sent
   */
  async tryRelease(id: string): Promise<PermitRelease> {
    const checked = checkPermitId(id);
    return this.once((request, timeoutMs) => this.#protocol.tryRelease(checked, request, timeoutMs));
  }

  /**
   * Releases several permits by their ids, all or none.
   *
   * @param ids  1 to 1,000 different ids
   * @returns true if all were held and no lease had ended; otherwise false, and nothing was released
   * @throws as `tryRelease`
   */
  async tryReleaseAll(ids: readonly string[]): Promise<boolean> {
    if (!Array.isArray(ids)) throw new TypeError(`ids must be an array of permit ids; got ${show(ids)}`);
    const checked = new Set(ids.map(checkPermitId));
    if (checked.size !== ids.length) throw new RangeError("ids must not contain the same permit twice");
    checkWhole("the number of ids", ids.length, 1, MOST_IDS);
    return this.once((request, timeoutMs) => this.#protocol.tryReleaseAll([...checked], request, timeoutMs));
  }

  /**
   * Sets the end of the lease of a permit, no matter which client acquired it. The new end may be sooner or later.
   *
   * @param id       permit id, 32 hexadecimal digits
   * @param leaseMs  lease from now, whole milliseconds, 1 to 31,536,000,000, or Infinity for a lease that never ends
   * @returns whether a client held the permit
   * @throws as `tryRelease`
   */
  async updateLeaseTime(id: string, leaseMs: number): Promise<boolean> {
    const checked = checkPermitId(id);
    if (leaseMs !== Infinity) checkWhole("leaseMs", leaseMs, 1, LONGEST_MS, " or Infinity");
    this.session.assertOpen(this.name);
    const sentMs = leaseMs === Infinity ? -1 : leaseMs;
    return insist(this.session, () => this.#protocol.updateLease(checked, sentMs, this.session.commandTimeoutMs));
  }

  /**
   * Returns how long the lease of a permit lasts from now, no matter which client acquired it.
   *
   * @param id  permit id, 32 hexadecimal digits
   * @returns milliseconds; Infinity if the lease never ends; undefined if no client holds the permit
   * @throws as `tryRelease`
   */
  async getLeaseTime(id: string): Promise<number | undefined> {
    const checked = checkPermitId(id);
    this.session.assertOpen(this.name);
    return insist(this.session, () => this.#protocol.leaseTime(checked, this.session.commandTimeoutMs));
  }

  /**
   * Returns the number of free permits and the ids of those that clients of either system hold. Read-only.
   *
   * @throws StoreError, ClosedError
   */
  override async inspect(): Promise<PermitInspection> {
    this.session.assertOpen(this.name);
    const state = await this.#protocol.inspect(undefined, this.session.commandTimeoutMs);
    return { ...(await describe(this.session, this.#protocol, state)), free: state.free };
  }

  #counts(): Promise<PermitCounts> {
    return this.counted((timeoutMs) => this.#protocol.counts(timeoutMs));
  }
}
