/** Redisson's `RPermitExpirableSemaphore`: permits with ids and leases, which both sides can see. */
import type { Inspection } from "../../index.js";
import { checkWhole, describe, type Hold, insist, Lease, show } from "../../internal.js";
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

/** Permits held for a time. All of them are renewed and end together. */
export class RedissonPermitLease extends Lease {
  /**
   * Ids of the permits, 32 hexadecimal digits each, as Java calls them; the first one is `owner`. Whoever has an id may release
   * that permit; then this lease counts as lost at its next renewal.
   */
  readonly permitIds: readonly string[];

  /** Leases come from the verbs of a RedissonPermitExpirableSemaphore. @internal */
  constructor(hold: Hold) {
    super(hold);
    this.permitIds = permitIdsOf(hold.grant.claim);
  }
}

/** What `inspect` tells about the semaphore. A snapshot: it may have changed when you read it. */
export interface PermitInspection extends Inspection {
  /** How many permits are free, without those that are over and were not taken back yet. */
  readonly free: number;
}

/** The ids of one lease go in one request. */
const MOST_IDS = 1_000;
const LONGEST_MS = 31_536_000_000;

/**
 * Redisson's `RPermitExpirableSemaphore`: permits that Java services and Node take from one count, each with a lease that all
 * of them can see, on one server, between failovers.
 *
 * Permits whose time is over come back when anybody of either side next asks for any. Our leases are renewed while their
 * holder lives; Redisson renews none, so those of Java end when they were said to, or never. Whoever has the id of a permit
 * may release it or move its end, whether or not it acquired it: an id can be handed from one side to the other. A lease that
 * Node takes over by its id is not renewed.
 *
 * No order among waiters of different processes; those of one are served in turn. A waiter asks when a message comes, when the
 * lease that ends first is over, and every `recheckMs`. Redisson dates leases by the clock of the Java service; all that is
 * done here goes by the server's. Tokens are that clock in microseconds: they order the grants of Holdfast, as long as it is
 * not set back; Java has none.
 *
 * Algorithm: Redisson's, a count and a sorted set of ids by the ends of their leases, and a channel that wakes
 * (docs/redisson-permits.md).
 */
export class RedissonPermitExpirableSemaphore extends PermitsLock<RedissonPermitLease> {
  readonly #protocol: ExpirableProtocol;

  /** Semaphores come from the factory `redisson`. @internal */
  constructor(place: PermitsPlace, options: RecheckOptions = {}) {
    const protocol = expirableProtocol(place);
    const make = (held: Hold): RedissonPermitLease => new RedissonPermitLease(held);
    const ownerOf = (claimNumber: number): string => firstPermitId(place.scope.ownerOf(claimNumber));
    super({ ...permitsParts(place, protocol, make, checkRecheckMs(options)), ownerOf }, MOST_IDS);
    this.#protocol = protocol;
  }

  /**
   * Says how many permits there are, unless somebody has.
   *
   * @param permits  whole number, 0 to 2,147,483,647
   * @returns whether this call set it
   * @throws StoreError   outcome unknown; or the name belongs to something else
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  a wrong number or option; nothing was sent
   */
  async trySetPermits(permits: number, { ttlMs }: SetPermitsOptions = {}): Promise<boolean> {
    checkWhole("permits", permits, 0, MOST_PERMITS);
    if (ttlMs !== undefined) checkWhole("ttlMs", ttlMs, 1, LONGEST_MS);
    return this.once((request, timeoutMs) => this.#protocol.trySetPermits(permits, ttlMs ?? 0, request, timeoutMs));
  }

  /**
   * Changes how many permits there are, counting those that are held. With fewer than are held, nobody is granted until enough
   * came back.
   *
   * @param permits  whole number, 0 to 2,147,483,647
   * @throws as `trySetPermits`
   */
  async setPermits(permits: number): Promise<void> {
    checkWhole("permits", permits, 0, MOST_PERMITS);
    await this.once((request, timeoutMs) => this.#protocol.setPermits(permits, request, timeoutMs));
  }

  /**
   * Puts permits in, or takes some away where the number is below 0, even more than are free.
   *
   * @param permits  whole number, -2,147,483,647 to 2,147,483,647
   * @throws as `trySetPermits`
   */
  async addPermits(permits: number): Promise<void> {
    checkWhole("permits", permits, -MOST_PERMITS, MOST_PERMITS);
    await this.once((request, timeoutMs) => this.#protocol.addPermits(permits, request, timeoutMs));
  }

  /** How many permits are free; below 0 if somebody made them fewer than are held. @throws as `trySetPermits` */
  async availablePermits(): Promise<number> {
    return (await this.#counts()).free;
  }

  /** How many permits are held, by either side. @throws as `trySetPermits` */
  async acquiredPermits(): Promise<number> {
    return (await this.#counts()).held;
  }

  /** How many permits there are, free and held; 0 if nobody has said. @throws as `trySetPermits` */
  async getPermits(): Promise<number> {
    const { free, held } = await this.#counts();
    return free + held;
  }

  /**
   * Gives back a permit by its id, whoever acquired it. A lease of ours is given back by `lease.release()`.
   *
   * @param id  32 hexadecimal digits, as Java calls the permit
   * @returns `"released"`; `"late"` if its lease was over but nobody had taken it back yet, so that it came back by this, which
   *          Java reports as a failure; `"not-held"` if nobody has it
   * @throws StoreError   outcome unknown
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  no such id can be; nothing was sent
   */
  async tryRelease(id: string): Promise<PermitRelease> {
    const checked = checkPermitId(id);
    return this.once((request, timeoutMs) => this.#protocol.tryRelease(checked, request, timeoutMs));
  }

  /**
   * Gives back several permits by their ids, all or none.
   *
   * @param ids  1 to 1,000, none twice
   * @returns whether all were held, and none was over; if not, nothing was done
   * @throws as `tryRelease`
   */
  async tryReleaseAll(ids: readonly string[]): Promise<boolean> {
    if (!Array.isArray(ids)) throw new TypeError(`ids must be an array of permit ids; got ${show(ids)}`);
    const checked = new Set(ids.map(checkPermitId));
    if (checked.size !== ids.length) throw new RangeError("ids must not name a permit twice");
    checkWhole("the number of ids", ids.length, 1, MOST_IDS);
    return this.once((request, timeoutMs) => this.#protocol.tryReleaseAll([...checked], request, timeoutMs));
  }

  /**
   * Lets the lease of a permit end so long from now, sooner or later than before, whoever acquired it.
   *
   * @param leaseMs  whole milliseconds, 1 to 31,536,000,000, or Infinity for a lease that does not end
   * @returns whether anybody held it
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
   * What is left of the lease of a permit, whoever acquired it, in ms; Infinity if it does not end, undefined if nobody holds it.
   *
   * @throws as `tryRelease`
   */
  async getLeaseTime(id: string): Promise<number | undefined> {
    const checked = checkPermitId(id);
    this.session.assertOpen(this.name);
    return insist(this.session, () => this.#protocol.leaseTime(checked, this.session.commandTimeoutMs));
  }

  /** How many permits are free, and the ids of those that are held, by either side. Changes nothing. @throws StoreError, ClosedError */
  override async inspect(): Promise<PermitInspection> {
    this.session.assertOpen(this.name);
    const state = await this.#protocol.inspect(undefined, this.session.commandTimeoutMs);
    return { ...(await describe(this.session, this.#protocol, state)), free: state.free };
  }

  #counts(): Promise<PermitCounts> {
    return this.counted((timeoutMs) => this.#protocol.counts(timeoutMs));
  }
}
