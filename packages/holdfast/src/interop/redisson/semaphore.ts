/** Redisson's `RSemaphore`: permits that are a bare count, with leases of our own on top. */
import type { Holder, Inspection } from "../../index.js";
import { checkWhole, describe, type Hold, Lease } from "../../internal.js";
import { checkRecheckMs, MOST_PERMITS, PermitsLock, permitsParts, type RecheckOptions } from "./permits-lock.js";
import type { PermitsPlace } from "./permits-place.js";
import { type RedissonSemaphoreProtocol, redissonSemaphoreProtocol } from "./semaphore-protocol.js";

/** How to say how many permits there are. */
export interface SetPermitsOptions {
  /**
   * How long the semaphore is to live; then it is gone, with all its permits, whoever has some. Whole milliseconds, 1 to
   * 31,536,000,000.
   * @default for ever
   */
  readonly ttlMs?: number | undefined;
}

/** Permits held for a time. All of them end together. */
export class RedissonSemaphoreLease extends Lease {
  /** How many permits are held. */
  readonly permits: number;

  /** Leases come from the verbs of a RedissonSemaphore. @internal */
  constructor(hold: Hold) {
    super(hold);
    this.permits = hold.grant.claim.amount;
  }
}

/** What `inspect` tells about a semaphore. A snapshot: it may have changed when you read it. */
export interface RedissonSemaphoreInspection extends Inspection {
  /** Who acquired through Holdfast, the one whose lease ends first at the front; others leave no trace on the server. */
  readonly holders: readonly (Holder & { readonly permits: number })[];
  /** How many permits are free; undefined if there is no such semaphore. */
  readonly free: number | undefined;
}

const LONGEST_MS = 31_536_000_000;

/**
 * Redisson's `RSemaphore`: permits that Java services and Node take from one count, on one server, between failovers.
 *
 * The format knows no holders: the count says how many permits are free, and whoever releases puts some in, whether or not it
 * had any. Java's permits are therefore never leased, and those of a Java process that dies are gone until somebody adds them.
 * Ours are: what this library takes is recorded beside the count, renewed while its holder lives, and put back after its lease
 * by whoever of this library comes next, so by a waiter at the latest; while no process of ours uses the semaphore, nobody
 * does. A lease cannot protect from others: if somebody releases permits that it never had, more than there should be are
 * held, and a lease is not told. Delete the semaphore and its leases are lost at their next renewal; make it anew at once,
 * from Java, and they are taken for permits of the new one.
 *
 * No order among waiters of different processes; those of one are served in turn. A message wakes them, and they ask again
 * every `recheckMs` in any case. Tokens are the clock of the server in microseconds: they order the grants of Holdfast, as
 * long as that clock is not set back; Java has none.
 *
 * Algorithm: Redisson's, a count and a channel that wakes, with the record of our own holders beside it
 * (docs/redisson-permits.md).
 */
export class RedissonSemaphore extends PermitsLock<RedissonSemaphoreLease> {
  readonly #protocol: RedissonSemaphoreProtocol;

  /** Semaphores come from the factory `redisson`. @internal */
  constructor(place: PermitsPlace, options: RecheckOptions = {}) {
    const protocol = redissonSemaphoreProtocol(place);
    const make = (held: Hold): RedissonSemaphoreLease => new RedissonSemaphoreLease(held);
    super(permitsParts(place, protocol, make, checkRecheckMs(options)), MOST_PERMITS);
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
   * Puts permits in, or takes some away where the number is below 0, even more than are free.
   *
   * @param permits  whole number, -2,147,483,647 to 2,147,483,647
   * @throws as `trySetPermits`
   */
  async addPermits(permits: number): Promise<void> {
    checkWhole("permits", permits, -MOST_PERMITS, MOST_PERMITS);
    await this.once((request, timeoutMs) => this.#protocol.add(permits, false, request, timeoutMs));
  }

  /**
   * Puts permits in, whoever had them: Redisson's `release`. Nothing is checked, and no lease of anybody ends by it: permits
   * of a lease are given back by `lease.release()`.
   *
   * @param permits  whole number, 1 to 2,147,483,647
   * @throws as `trySetPermits`
   */
  async release(permits = 1): Promise<void> {
    checkWhole("permits", permits, 1, MOST_PERMITS);
    await this.once((request, timeoutMs) => this.#protocol.add(permits, false, request, timeoutMs));
  }

  /** As `release`, unless there is no such semaphore. @returns whether there is one @throws as `release` */
  async releaseIfExists(permits = 1): Promise<boolean> {
    checkWhole("permits", permits, 1, MOST_PERMITS);
    return this.once((request, timeoutMs) => this.#protocol.add(permits, true, request, timeoutMs));
  }

  /**
   * Takes all permits that are free, for good: nobody holds them, and no lease ends. If somebody had taken away more than there
   * were, that is settled too.
   *
   * @returns how many were free, below 0 in that case
   * @throws as `trySetPermits`
   */
  async drainPermits(): Promise<number> {
    return this.once((request, timeoutMs) => this.#protocol.drain(request, timeoutMs));
  }

  /** How many permits are free; 0 if there is no such semaphore, below 0 if somebody took away more. @throws StoreError, ClosedError */
  async availablePermits(): Promise<number> {
    return this.counted((timeoutMs) => this.#protocol.available(timeoutMs));
  }

  /** How many permits are free, and who of this library's holders has how many. Changes nothing. @throws StoreError, ClosedError */
  override async inspect(): Promise<RedissonSemaphoreInspection> {
    this.session.assertOpen(this.name);
    const state = await this.#protocol.inspect(undefined, this.session.commandTimeoutMs);
    const described = await describe(this.session, this.#protocol, state);
    const holders = described.holders.map((holder, i) => ({ ...holder, permits: state.held[i] ?? 0 }));
    return { ...described, holders, free: state.free };
  }
}
