import { type AcquireOptions, LeaseLostError, type TryAcquireOptions } from "holdfast";
import {
  checkWhole,
  cleanUp,
  ForeignLock,
  Hold,
  insist,
  Lease,
  NONE,
  NOTHING_RUNS,
  now,
  type ResolvedOptions,
} from "holdfast/internal";
import { readWriteChannel } from "../names.js";
import type { Place } from "../place.js";
import type { RedissonScope } from "../scope.js";
import { partsOf } from "../waiting.js";
import { downgrade, readProtocol, WRITER, writeProtocol } from "./protocol.js";

const SHORTEST_LEASE_MS = 100;

/** A lease of the read side. It is never longer than `watchdogMs`. */
export class RedissonReadLease extends Lease {
  readonly #scope: RedissonScope;

  /** @internal */
  constructor(hold: Hold, scope: RedissonScope) {
    super(hold);
    this.#scope = scope;
  }

  /** Extends the lease, like `Lease.extend`. @throws RangeError  `leaseMs` is longer than `watchdogMs` */
  override async extend(leaseMs: number): Promise<void> {
    checkReadLease(leaseMs, this.#scope);
    return super.extend(leaseMs);
  }
}

/** A lease of the write side. `downgrade` turns it into a read lease. */
export class RedissonWriteLease extends Lease {
  readonly #hold: Hold;
  readonly #place: Place;

  /** @internal */
  constructor(hold: Hold, place: Place) {
    super(hold);
    this.#hold = hold;
    this.#place = place;
  }

  /**
   * Ends this lease and returns a read lease, without letting another writer hold the lock in between. Notifies waiting
   * readers, including those of Java. The new lease is as long as this one, but at most `watchdogMs`.
   *
   * @throws LeaseLostError  this lease has ended
   * @throws StoreError      outcome unknown; assume that you hold neither lease; any hold left on the server expires
   * @throws ClosedError     this Holdfast was closed
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
        // Like a grant, the downgrade counts only once replicas acknowledge it.
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
      void cleanUp(session, protocol, reader, true);
      void cleanUp(session, writeProtocol(this.#place), claim, true);
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

/** The read side of a RedissonReadWriteLock, which many callers can hold at a time. */
export class RedissonReadLock extends ForeignLock<RedissonReadLease> {
  readonly #scope: RedissonScope;

  /** @internal */
  constructor(place: Place) {
    const { scope, raw } = place;
    // The default lease may be longer, because it also applies to other locks.
    const leaseMs = Math.min(scope.defaults.leaseMs, scope.watchdogMs);
    const defaults: ResolvedOptions = { ...scope.defaults, leaseMs };
    super({
      ...partsOf(place, readProtocol(place), readWriteChannel(raw), defaults),
      make: (held) => new RedissonReadLease(held, scope),
    });
    this.#scope = scope;
  }

  /** Waits for the read side, like `ForeignLock.acquire`. @throws RangeError  `leaseMs` is longer than `watchdogMs` */
  override async acquire(options: AcquireOptions = NONE): Promise<RedissonReadLease> {
    checkReadOptions(options, this.#scope);
    return super.acquire(options);
  }

  /** Like `ForeignLock.tryAcquire`. @throws RangeError  `leaseMs` is longer than `watchdogMs` */
  override async tryAcquire(options: TryAcquireOptions = NONE): Promise<RedissonReadLease | null> {
    checkReadOptions(options, this.#scope);
    return super.tryAcquire(options);
  }
}

/** The write side of a RedissonReadWriteLock, which one caller can hold at a time. */
export class RedissonWriteLock extends ForeignLock<RedissonWriteLease> {
  /** @internal */
  constructor(place: Place) {
    super({
      ...partsOf(place, writeProtocol(place), readWriteChannel(place.raw)),
      ownerOf: (claimNumber) => place.scope.ownerOf(claimNumber) + WRITER,
      make: (held) => new RedissonWriteLease(held, place),
    });
  }
}

/**
 * Redisson's `RReadWriteLock`: readers in Node and Java share it, and a writer holds it alone. This holds on one server
 * and between failovers.
 *
 * Not reentrant: a reader that acquires the write side waits for itself. A writer can become a reader with
 * `RedissonWriteLease.downgrade`. New readers are granted while others read, so readers can starve a writer. The hold
 * of a crashed reader does not end with its own lease, but when the last reader that renews has left.
 *
 * All readers share one expiry. When a Java service renews, it sets this expiry to its `lockWatchdogTimeout`, even if
 * the lock then expires sooner than before. So a read lease cannot be longer than `watchdogMs`.
 */
export class RedissonReadWriteLock {
  /** Name of the lock. */
  readonly name: string;
  /** The read side. Several readers may hold it at a time. */
  readonly read: RedissonReadLock;
  /** The write side. A writer excludes readers and other writers. */
  readonly write: RedissonWriteLock;

  /** @internal */
  constructor(place: Place) {
    this.name = place.name;
    this.read = new RedissonReadLock({ ...place, kind: `${place.kind}.read` });
    this.write = new RedissonWriteLock({ ...place, kind: `${place.kind}.write` });
  }
}

/** Checks only `leaseMs`. The base class checks the other options. */
function checkReadOptions(options: AcquireOptions, scope: RedissonScope): void {
  if (options?.leaseMs !== undefined) checkReadLease(options.leaseMs, scope);
}

function checkReadLease(leaseMs: unknown, { watchdogMs }: RedissonScope): void {
  checkWhole("leaseMs of a read lock", leaseMs, SHORTEST_LEASE_MS, watchdogMs);
}
