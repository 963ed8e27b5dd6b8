/** The methods that all locks with leases share. Each kind adds its own methods and its own protocol. */
import { acquire, type MakeLease, run, tryAcquire } from "./acquire.js";
import { unknownOutcome } from "./errors.js";
import { channels, type ForcedEvent } from "./events.js";
import { forcedNote } from "./inbox.js";
import { type Inspection, inspect } from "./inspection.js";
import { checkWords, show } from "./keys.js";
import type { Lease } from "./lease.js";
import type { LocalQueues } from "./local-queue.js";
import {
  type AcquireOptions,
  checkWhole,
  NONE,
  type ResolvedOptions,
  type RunOptions,
  resolve,
  type TryAcquireOptions,
} from "./options.js";
import type { LockProtocol } from "./protocol.js";
import type { Session } from "./session.js";

/**
 * Which holder to take the lock from, and the details to send to that holder. Identify the holder by `owner`, by
 * `token`, or by both, as returned by `inspect`.
 */
export interface ForceReleaseOptions {
  /** Owner id of the holder. */
  readonly owner?: string | undefined;
  /** Fencing token of the holder. */
  readonly token?: number | undefined;
  /** Why the lock is released. Sent to the holder if it can be reached. 1 to 256 bytes. */
  readonly reason?: string | undefined;
  /** Who releases the lock. Also sent to the holder. 1 to 256 bytes. */
  readonly by?: string | undefined;
}

/** See `Lock.partsOf`. */
export interface LockParts<Held extends Lease> {
  readonly session: Session;
  readonly protocol: LockProtocol;
  readonly defaults: ResolvedOptions;
  readonly make: MakeLease<Held>;
}

/**
 * A named lock. It has no state in this process: it is only a name and a connection to the server. Any number of
 * objects for the same lock can exist. `acquire` returns a lease, and only that lease can be extended or released.
 */
export class Lock<Held extends Lease = Lease> {
  /** Name of the lock. */
  readonly name: string;
  /** @internal */
  protected readonly session: Session;
  /** @internal */
  protected readonly protocol: LockProtocol;
  /** @internal */
  protected readonly defaults: ResolvedOptions;
  /** @internal */
  protected readonly make: MakeLease<Held>;

  /**
   * The queues in which callers of this process share claims; undefined for kinds whose callers do not share them.
   * @internal
   */
  protected readonly localQueues: LocalQueues | undefined;

  /** Create locks with the factory methods of a Holdfast. @internal */
  constructor(
    session: Session,
    protocol: LockProtocol,
    defaults: ResolvedOptions,
    make: MakeLease<Held>,
    localQueues?: LocalQueues,
  ) {
    this.name = protocol.name;
    this.session = session;
    this.protocol = protocol;
    this.defaults = defaults;
    this.make = make;
    this.localQueues = localQueues;
  }

  /** The parts of a lock, for kinds that combine other locks. @internal */
  static partsOf<Held extends Lease>({ session, protocol, defaults, make }: Lock<Held>): LockParts<Held> {
    return { session, protocol, defaults, make };
  }

  /**
   * Waits until the lock is free, then acquires it.
   *
   * Takes one round trip if the lock is free. Otherwise, the caller joins the queue, and the server notifies it of the
   * grant.
   *
   * @returns a lease whose token is higher than every earlier token for this name
   * @throws AcquireTimeoutError  the lock was not free within `waitMs`; nothing is held; the error names the holder if
   *                              known
   * @throws PausedError          the lock is paused; nothing is held; the error says who paused it, why and until when
   * @throws StoreError           the server did not reply; any lock that it granted is released or expires
   * @throws EvictionError        the server may evict locks, and you did not allow that; nothing is held
   * @throws ClosedError          this Holdfast was closed
   * @throws TypeError, RangeError  an option is invalid; nothing was sent
   * @throws the signal's reason, if the signal aborts the wait; nothing is held
   */
  acquire(options: AcquireOptions = NONE): Promise<Held> {
    let resolved: ResolvedOptions;
    try {
      resolved = resolve(options, this.defaults);
    } catch (error) {
      return Promise.reject(error);
    }
    return acquire(this.session, this.protocol, resolved, this.make, this.localQueues);
  }

  /**
   * Acquires the lock only if it is free now. Takes one round trip.
   *
   * @returns a lease, or null if the lock is taken or paused, or someone else is ahead in the queue
   * @throws StoreError   the server did not reply; any lock that it granted is released or expires
   * @throws EvictionError  the server may evict locks, and you did not allow that; nothing is held
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  an option is invalid; nothing was sent
   */
  async tryAcquire(options: TryAcquireOptions = NONE): Promise<Held | null> {
    return tryAcquire(this.session, this.protocol, resolve(options, this.defaults), this.make);
  }

  /**
   * Acquires the lock, runs `work`, and releases the lock. Prefer `run` to `acquire`, because `run` always releases the
   * lock. The `release` option says whether `run` awaits the release.
   *
   * @returns what `work` returned
   * @throws what `work` threw; this takes precedence over the errors below
   * @throws LeaseLostError  `work` ended after its lease; it may have overlapped with another holder's work
   * @throws the errors of `acquire`; in that case, `work` was not called
   */
  async run<Result>(work: (lease: Held) => Result | Promise<Result>, options: RunOptions = NONE): Promise<Result> {
    return run(this.session, work, options, (given) => this.acquire(given));
  }

  /**
   * Returns who holds the lock, since when and for how much longer, and who is waiting. Read-only.
   *
   * @throws StoreError, ClosedError
   */
  inspect(): Promise<Inspection> {
    return inspect(this.session, this.protocol);
  }

  /**
   * Takes the lock from a specific holder, identified by values that `inspect` returned. Meant for operators, not for
   * programs.
   *
   * The next waiter gets the lock immediately. If the holder can be reached, its signal aborts immediately, and its
   * error carries `by` and `reason`, at most 256 bytes each. This method does not end a pause; use `resume` for that.
   *
   * @returns false if the lock is free or someone else holds it now; in that case, nothing was done. A caller that
   *          shares the holder's claim (see `fairness`) and has taken it over counts as the same holder.
   * @throws StoreError  the outcome is unknown
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  neither `owner` nor `token` was given, or a value is invalid
   */
  async forceRelease(whose: ForceReleaseOptions): Promise<boolean> {
    const { owner, token, by, reason } = whose ?? {};
    if (owner === undefined && token === undefined) {
      throw new TypeError(`forceRelease needs { owner } or { token } of the current holder; got ${show(whose)}`);
    }
    if (owner !== undefined && (typeof owner !== "string" || owner === "")) {
      throw new TypeError(`owner must be a non-empty string; got ${show(owner)}`);
    }
    if (token !== undefined) checkWhole("token", token, 1, Number.MAX_SAFE_INTEGER);
    if (by !== undefined) checkWords("by", by);
    if (reason !== undefined) checkWords("reason", reason);
    this.session.assertOpen(this.name);
    const reconnects = this.session.commandReconnects;
    const forced = { by, reason };
    const whom = { owner, token, note: forcedNote(forced) };
    const isReleased = await this.protocol.forceRelease(whom, this.session.commandTimeoutMs);
    if (!isReleased && reconnects !== this.session.commandReconnects) {
      // After a reconnect, the client may have sent the request twice. In that case, this may be the reply to the
      // second copy, and the first copy may have released the lock.
      throw unknownOutcome(this.name, "the connection was lost, and an earlier copy of the request may have run");
    }
    if (isReleased && channels.forced.hasSubscribers) {
      const { clientId } = this.session;
      const about = { kind: this.protocol.kind, lockName: this.name, owner: owner ?? "", clientId };
      const event: ForcedEvent = { ...about, token, forced };
      channels.forced.publish(event);
    }
    return isReleased;
  }
}
