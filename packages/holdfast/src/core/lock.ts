/** The verbs that every kind has which is held, written once. A kind adds its own, and its own protocol. */
import { acquire, type MakeLease, run, tryAcquire } from "./acquire.js";
import { StoreError } from "./errors.js";
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
  resolve,
  type TryAcquireOptions,
} from "./options.js";
import type { LockProtocol } from "./protocol.js";
import type { Session } from "./session.js";

/** Whom to take a lock away from: by `owner`, by `token`, or by both, as `inspect` shows them. And what to say. */
export interface ForceReleaseOptions {
  readonly owner?: string | undefined;
  readonly token?: number | undefined;
  /** Why: told to the holder, if it can be reached. 1 to 256 bytes. */
  readonly reason?: string | undefined;
  /** Who does it: told to the holder as well. 1 to 256 bytes. */
  readonly by?: string | undefined;
}

/** See `Lock.partsOf`. @internal */
export interface LockParts<Held extends Lease> {
  readonly session: Session;
  readonly protocol: LockProtocol;
  readonly defaults: ResolvedOptions;
  readonly make: MakeLease<Held>;
}

/**
 * A named lock. It has no state in this process: it is a name and a way to the server, and any number of objects
 * may exist. Who acquires gets a lease, and only that lease can be extended or released.
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

  /** Where callers of one process share a claim; undefined for kinds whose callers do not. @internal */
  protected readonly localQueues: LocalQueues | undefined;

  /** Locks come from the factories of a Holdfast. @internal */
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

  /** What stands behind a lock, for kinds that are made of other locks. @internal */
  static partsOf<Held extends Lease>({ session, protocol, defaults, make }: Lock<Held>): LockParts<Held> {
    return { session, protocol, defaults, make };
  }

  /**
   * Waits until the lock is free, then holds it.
   *
   * One round trip if it is free. Otherwise the caller queues and is told when its turn comes.
   *
   * @returns a lease whose token is higher than every earlier one of this name
   * @throws AcquireTimeoutError  after `waitMs`; nothing is held; says who has it
   * @throws PausedError          somebody has paused it; nothing is held; says who and why, and until when
   * @throws StoreError           the server did not answer; what may have been granted is given back or expires
   * @throws EvictionError        the server may evict locks, and that was not allowed; nothing is held
   * @throws ClosedError          this Holdfast was closed
   * @throws TypeError, RangeError  a wrong option; nothing was sent
   * @throws the signal's reason, if it aborts the wait; nothing is held
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
   * Takes the lock only if it is free now. One round trip.
   *
   * @returns null if someone else holds it or stands before us
   * @throws StoreError   the server did not answer; what may have been granted is given back or expires
   * @throws EvictionError  the server may evict locks, and that was not allowed; nothing is held
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  a wrong option; nothing was sent
   */
  async tryAcquire(options: TryAcquireOptions = NONE): Promise<Held | null> {
    return tryAcquire(this.session, this.protocol, resolve(options, this.defaults), this.make);
  }

  /**
   * Runs `work` while holding the lock. Prefer it to `acquire`: it cannot forget the release.
   *
   * @returns what `work` returned
   * @throws what `work` threw, always; otherwise
   * @throws LeaseLostError  `work` ended after its lease; it may have overlapped with another holder's
   * @throws as `acquire`, and then `work` was not called
   */
  async run<Result>(work: (lease: Held) => Result | Promise<Result>, options: AcquireOptions = NONE): Promise<Result> {
    return run(() => this.acquire(options), work);
  }

  /** Who holds it, since when and for how long, and who waits. Changes nothing. @throws StoreError, ClosedError */
  inspect(): Promise<Inspection> {
    return inspect(this.session, this.protocol);
  }

  /**
   * Takes the lock away from a holder, named as `inspect` shows it: for people, not for programs. The next
   * waiter is granted at once, and the holder's signal aborts at once, if it can be reached. Its error then says `by` whom
   * and for what `reason`, at most 256 bytes each. A pause is not released but resumed.
   *
   * @returns false, and nothing is done, if it is free or somebody else holds it by now; who shares its claim (see
   *          `fairness`) and has followed it counts as the same holder
   * @throws StoreError  outcome unknown
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  neither an owner nor a token was given, or a wrong one
   */
  async forceRelease(whose: ForceReleaseOptions): Promise<boolean> {
    const { owner, token, by, reason } = whose ?? {};
    if (owner === undefined && token === undefined) {
      throw new TypeError(`forceRelease needs { owner } or { token } of the present holder; got ${show(whose)}`);
    }
    if (owner !== undefined && (typeof owner !== "string" || owner === "")) {
      throw new TypeError(`owner must be a string that is not empty; got ${show(owner)}`);
    }
    if (token !== undefined) checkWhole("token", token, 1, Number.MAX_SAFE_INTEGER);
    if (by !== undefined) checkWords("by", by);
    if (reason !== undefined) checkWords("reason", reason);
    this.session.assertOpen(this.name);
    const reconnects = this.session.commandReconnects;
    const forced = { by, reason };
    const named = { ...(owner !== undefined && { owner }), ...(token !== undefined && { token }) };
    const whom = { ...named, note: forcedNote(forced) };
    const isReleased = await this.protocol.forceRelease(whom, this.session.commandTimeoutMs);
    if (!isReleased && reconnects !== this.session.commandReconnects) {
      // A client may have sent it twice, and then this is the answer to the second copy.
      const cause = new Error("the connection was lost meanwhile, and an earlier copy may have released it");
      throw new StoreError(this.name, { mayHaveRun: true, transient: true, cause });
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
