import { type MakeLease, timeoutError } from "../core/acquire.js";
import { Hold, hold } from "../core/hold.js";
import { Lease } from "../core/lease.js";
import { Lock } from "../core/lock.js";
import type { AcquireOptions, TryAcquireOptions } from "../core/options.js";
import { NONE, type ResolvedOptions, resolve } from "../core/options.js";
import type { LockProtocol, TimedOut } from "../core/protocol.js";
import { cleanUp } from "../core/release.js";
import type { Session } from "../core/session.js";
import { type ForeignWait, ForeignWaiter, type Pauses } from "./foreign-waiter.js";
import { lineOf, lineOfOne } from "./line.js";

/** The parts of a lock in the format of another system. */
export interface ForeignParts<Held extends Lease> {
  /** The session of the Holdfast that runs all requests. */
  readonly session: Session;
  /** Sends the requests. */
  readonly protocol: LockProtocol;
  /** Values for options that a caller omits. */
  readonly defaults: ResolvedOptions;
  /** Makes the lease for a hold. */
  readonly make: MakeLease<Held>;
  /** The delays between successive requests of a waiter. */
  readonly pauses: Pauses;
  /** Subscribes to changes, if the protocol publishes them. */
  readonly listen?: ForeignWait["listen"] | undefined;
  /** Maximum number of requests per acquire, 1 or more. Default: Infinity. */
  readonly attempts?: number | undefined;
  /** Returns the owner id of a claim in the foreign format. Default: the claim keeps its Holdfast owner id. */
  readonly ownerOf?: ForeignWait["ownerOf"] | undefined;
  /**
   * Key of the local line. Callers in one process with the same key are served in order, and only the first one sends
   * requests. Undefined if the server keeps the order, because then it must see every caller.
   */
  readonly line: string | undefined;
}

/**
 * A lock that is shared with clients of another system. Its waiters do not use Holdfast's queue. Otherwise it works
 * like any other `Lock`.
 */
export class ForeignLock<Held extends Lease = Lease> extends Lock<Held> {
  readonly #parts: ForeignParts<Held>;

  /** @internal */
  constructor(parts: ForeignParts<Held>) {
    super(parts.session, parts.protocol, parts.defaults, parts.make);
    this.#parts = parts;
  }

  /**
   * Waits until the lock is free, then acquires it.
   *
   * Takes one round trip if the lock is free. Otherwise Holdfast asks again after a delay, or earlier if the current
   * lease ends or the protocol publishes a release.
   *
   * @returns a lease; its token orders only grants made through Holdfast, unless the format has its own tokens
   * @throws AcquireTimeoutError  not granted within `waitMs`; nothing is held; names the holder if the format shows it
   * @throws StoreError           the server did not reply; a grant that may have been made is released or expires
   * @throws EvictionError        the server may evict locks, and `allowEviction` is not set; nothing is held
   * @throws ClosedError          this Holdfast was closed
   * @throws TypeError, RangeError  invalid option; nothing was sent
   * @throws the signal's reason, if it aborts the wait; nothing is held
   */
  override async acquire(options: AcquireOptions = NONE): Promise<Held> {
    const resolved = this.resolved(options);
    const { runtime } = this.session;
    const startedAtMs = runtime.monotonicMs();
    const end = await this.#wait(resolved);
    if (end instanceof Hold) return this.#made(end);
    // If `attempts` ended the wait before `waitMs`, the error reports the actual length of the wait.
    const waitMs = Math.min(resolved.waitMs, Math.max(1, Math.ceil(runtime.monotonicMs() - startedAtMs)));
    throw await timeoutError(this.session, this.protocol, { ...resolved, waitMs }, end, startedAtMs);
  }

  /**
   * Acquires the lock only if it is free now. Takes one round trip.
   *
   * @returns null if another claim holds it
   * @throws StoreError   the server did not reply; a grant that may have been made is released or expires
   * @throws EvictionError  the server may evict locks, and `allowEviction` is not set; nothing is held
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  invalid option; nothing was sent
   */
  override async tryAcquire(options: TryAcquireOptions = NONE): Promise<Held | null> {
    const end = await this.#wait({ ...this.resolved(options), waitMs: 0 });
    return end instanceof Hold ? this.#made(end) : null;
  }

  /** Makes the lease. If that throws, releases the hold because the caller never gets a lease to release. */
  #made(hold: Hold): Held {
    try {
      return this.make(hold);
    } catch (error) {
      void new Lease(hold).release().catch(() => {});
      throw error;
    }
  }

  /**
   * Resolves the options of an acquire. If a format has additional options, its class overrides this method and removes
   * those options before it calls `super.resolved`.
   *
   * @internal
   */
  protected resolved(options: AcquireOptions): ResolvedOptions {
    return resolve(options, this.defaults);
  }

  /** Called when a hold begins. Overridden by formats that must check their holds later. @internal */
  protected begun(_hold: Hold): void {}

  #wait(options: ResolvedOptions): Promise<Hold | TimedOut> {
    const { session, protocol, pauses, listen, attempts, ownerOf, line } = this.#parts;
    return new Promise((resolveWait, reject) => {
      options.signal?.throwIfAborted();
      new ForeignWaiter({
        session,
        protocol,
        options,
        pauses,
        listen,
        attempts,
        ownerOf,
        // `tryAcquire` never joins the local line.
        line: line === undefined || options.waitMs === 0 ? lineOfOne(session) : lineOf(session, line),
        ends: {
          granted: (granted) => {
            try {
              const held = hold(session, protocol, granted, options);
              this.begun(held);
              resolveWait(held);
            } catch (error) {
              void cleanUp(session, protocol, granted.claim, granted.mayStillRun());
              reject(error);
            }
          },
          timedOut: resolveWait,
          failed: reject,
        },
      });
    });
  }
}
