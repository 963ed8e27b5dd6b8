import { type AcquireOptions, LeaseLostError, type TryAcquireOptions } from "../../../index.js";
import {
  checkWhole,
  cleanUp,
  Hold,
  insist,
  Lease,
  NONE,
  NOTHING_RUNS,
  now,
  type ResolvedOptions,
} from "../../../internal.js";
import { ForeignLock } from "../../foreign-lock.js";
import { readWriteChannel } from "../names.js";
import type { Place } from "../place.js";
import type { RedissonScope } from "../scope.js";
import { partsOf } from "../waiting.js";
import { downgrade, readProtocol, WRITER, writeProtocol } from "./protocol.js";

const SHORTEST_LEASE_MS = 100;

/** A read hold, whose lease is no longer than `watchdogMs`. */
export class RedissonReadLease extends Lease {
  readonly #scope: RedissonScope;

  /** Leases come from the verbs of a lock. @internal */
  constructor(hold: Hold, scope: RedissonScope) {
    super(hold);
    this.#scope = scope;
  }

  /** As of every lease. @throws RangeError  longer than `watchdogMs` */
  override async extend(leaseMs: number): Promise<void> {
    checkReadLease(leaseMs, this.#scope);
    return super.extend(leaseMs);
  }
}

/** A write hold, which can go on as a read hold. */
export class RedissonWriteLease extends Lease {
  readonly #hold: Hold;
  readonly #place: Place;

  /** Leases come from the verbs of a lock. @internal */
  constructor(hold: Hold, place: Place) {
    super(hold);
    this.#hold = hold;
    this.#place = place;
  }

  /**
   * Ends this lease and goes on with one that reads, without a moment in which another could write. Readers that wait are
   * woken, of Java as well. The new lease is as long as this one, `watchdogMs` at most.
   *
   * @throws LeaseLostError  this lease is over
   * @throws StoreError      outcome unknown; count on neither: what is left ends by itself within the lease
   */
  async downgrade(): Promise<RedissonReadLease> {
    this.assertHeld();
    const { session, watchdogMs } = this.#place.scope;
    const { claim, token } = this.#hold.grant;
    const leaseMs = Math.min(this.#hold.leaseMs, watchdogMs);
    const reader = { ...claim, owner: claim.owner.slice(0, -WRITER.length), leaseMs };
    const protocol = readProtocol(this.#place);
    let setAt = now(session.runtime);
    this.#hold.rest();
    try {
      const outcome = await insist(session, async () => {
        setAt = now(session.runtime);
        const isDone = (await downgrade(this.#place, claim, reader, session.commandTimeoutMs)) === "downgraded";
        if (!isDone || protocol.confirm === undefined) return isDone ? "downgraded" : "forgotten";
        // As a grant: it counts once replicas have it.
        setAt = now(session.runtime);
        const confirmed = await protocol.confirm({ claim: reader, token, slots: [] }, session.commandTimeoutMs);
        return confirmed === "extended" ? "downgraded" : "forgotten";
      });
      if (outcome === "forgotten") {
        this.#hold.lose("server-lost");
        throw new LeaseLostError(this.name, { reason: "server-lost", token, owner: claim.owner });
      }
      session.assertOpen(this.name);
    } catch (error) {
      this.#hold.end();
      void cleanUp(session, protocol, reader, true, session.commandTimeoutMs);
      void cleanUp(session, writeProtocol(this.#place), claim, true, session.commandTimeoutMs);
      throw error;
    }
    this.#hold.end();
    this.end("released");
    this.#hold.undoLateRequests();
    const facts = { token, setAt, options: this.#hold.options, mayStillRun: NOTHING_RUNS };
    return new RedissonReadLease(
      new Hold(session, protocol, { claim: reader, token, slots: [] }, facts),
      this.#place.scope,
    );
  }
}

/** The side of a RedissonReadWriteLock that many may hold. */
export class RedissonReadLock extends ForeignLock<RedissonReadLease> {
  readonly #scope: RedissonScope;

  /** Locks come from the factory `redisson`. @internal */
  constructor(place: Place) {
    const { scope, raw } = place;
    // A longer default is for locks that are no readers'.
    const leaseMs = Math.min(scope.defaults.leaseMs, scope.watchdogMs);
    const defaults: ResolvedOptions = { ...scope.defaults, leaseMs };
    super({
      ...partsOf(place, readProtocol(place), readWriteChannel(raw), defaults),
      make: (held) => new RedissonReadLease(held, scope),
    });
    this.#scope = scope;
  }

  /** As of every lock. @throws RangeError  `leaseMs` is longer than `watchdogMs` */
  override async acquire(options: AcquireOptions = NONE): Promise<RedissonReadLease> {
    checkReadOptions(options, this.#scope);
    return super.acquire(options);
  }

  /** As of every lock. @throws RangeError  `leaseMs` is longer than `watchdogMs` */
  override async tryAcquire(options: TryAcquireOptions = NONE): Promise<RedissonReadLease | null> {
    checkReadOptions(options, this.#scope);
    return super.tryAcquire(options);
  }
}

/** The side of a RedissonReadWriteLock that one may hold. */
export class RedissonWriteLock extends ForeignLock<RedissonWriteLease> {
  /** Locks come from the factory `redisson`. @internal */
  constructor(place: Place) {
    super({
      ...partsOf(place, writeProtocol(place), readWriteChannel(place.raw)),
      ownerOf: (claimNumber) => place.scope.ownerOf(claimNumber) + WRITER,
      make: (held) => new RedissonWriteLease(held, place),
    });
  }
}

/**
 * Redisson's `RReadWriteLock`: Node and Java readers share it, a writer has it alone, on one server, between failovers.
 *
 * Not reentrant, and a reader that acquires the write side waits for itself; a writer can become a reader by
 * `RedissonWriteLease.downgrade`. Readers come in whenever others read, so they can starve a writer. What a reader that died
 * has held goes with the last of the others that renew, not when its own lease ends.
 *
 * The expiry of the lock is common to all readers, and each Java service that renews sets it to its `lockWatchdogTimeout`,
 * even where that is sooner than before. So a read lease may not be longer than `watchdogMs`.
 */
export class RedissonReadWriteLock {
  /** Name of the lock. */
  readonly name: string;
  /** Held together with other readers. */
  readonly read: RedissonReadLock;
  /** Held alone. */
  readonly write: RedissonWriteLock;

  /** Locks come from the factory `redisson`. @internal */
  constructor(place: Place) {
    this.name = place.name;
    this.read = new RedissonReadLock({ ...place, kind: `${place.kind}.read` });
    this.write = new RedissonWriteLock({ ...place, kind: `${place.kind}.write` });
  }
}

/** All else about the options is checked where all locks check them. */
function checkReadOptions(options: AcquireOptions, scope: RedissonScope): void {
  if (options?.leaseMs !== undefined) checkReadLease(options.leaseMs, scope);
}

function checkReadLease(leaseMs: unknown, { watchdogMs }: RedissonScope): void {
  checkWhole("leaseMs of a reader", leaseMs, SHORTEST_LEASE_MS, watchdogMs);
}
