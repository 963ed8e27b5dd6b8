import { type MakeLease, timeoutError } from "../core/acquire.js";
import { Hold, hold } from "../core/hold.js";
import { Lease } from "../core/lease.js";
import { Lock } from "../core/lock.js";
import { type AcquireOptions, NONE, type ResolvedOptions, resolve, type TryAcquireOptions } from "../core/options.js";
import type { TimedOut } from "../core/protocol.js";
import { redlockProtocol } from "./protocol.js";
import type { Quorum } from "./quorum.js";
import type { RedlockPlace } from "./servers.js";
import { RedlockWaiter } from "./waiter.js";

/**
 * Mutual exclusion across processes on a majority of independent servers: at most one valid lease per name, even while
 * a minority of the servers is down.
 *
 * Not reentrant: a holder that acquires again waits for itself.
 *
 * Waiters of different processes are not ordered. Each tries to win a majority, and a waiter that fails tries again
 * after a random delay or when it is notified of a release. Acquisitions that do not overlap get rising tokens,
 * regardless of clocks; overlapping acquisitions always get distinct tokens. If a holder crashes, the lock stays taken
 * until its lease ends. A server that lost its leases does not vote until a majority of servers has reported the
 * longest lease and that lease has ended (docs/kinds/redlock.md#restarts). Leases may differ in length.
 *
 * Algorithm: Redlock (redis.io, "Distributed Locks with Redis"), extended with tokens
 * (docs/adr/092-tokens-on-a-quorum.md).
 *
 * @example
 * const holdfast = createHoldfast({ redlock: [new Redis(7001), new Redis(7002), new Redis(7003)] });
 * await holdfast.redlock("order:42").run(async (lease) => {
 *   await charge(order, { signal: lease.signal });
 * });
 */
export class Redlock extends Lock {
  readonly #quorum: Quorum;
  readonly #place: RedlockPlace;

  /** @internal */
  constructor(quorum: Quorum, place: RedlockPlace, defaults: ResolvedOptions) {
    const make: MakeLease<Lease> = (held) => new Lease(held);
    super(quorum.session, redlockProtocol(quorum, place), defaults, make);
    this.#quorum = quorum;
    this.#place = place;
  }

  /**
   * Waits until a majority of the servers grants the lock, then holds it.
   *
   * If the lock is free, this takes one round trip, or two if the servers have different last tokens, for example
   * because the last acquire did not reach all of them.
   *
   * @returns a lease whose token is higher than every token granted for this name before the call
   * @throws AcquireTimeoutError  after `waitMs`; nothing is held
   * @throws QuorumError          no reply from a majority of the servers; nothing is held, and grants by individual
   *                              servers are released or expire
   * @throws EvictionError        a server may evict locks, and `allowEviction` is not set; nothing is held
   * @throws ClosedError          this Holdfast instance was closed
   * @throws TypeError, RangeError  an invalid option; nothing was sent
   * @throws the signal's reason, if it aborts the wait; nothing is held
   */
  override async acquire(options: AcquireOptions = NONE): Promise<Lease> {
    const resolved = resolve(options, this.defaults);
    const calledAtMs = this.session.runtime.monotonicMs();
    const end = await this.#wait(resolved);
    if (end instanceof Hold) return this.make(end);
    throw await timeoutError(this.session, this.protocol, resolved, end, calledAtMs);
  }

  /**
   * Acquires the lock only if a majority of the servers grants it now. Makes one attempt.
   *
   * @returns null if another owner holds the lock or is acquiring it now
   * @throws QuorumError    no reply from a majority of the servers; nothing is held
   * @throws EvictionError  a server may evict locks, and `allowEviction` is not set; nothing is held
   * @throws ClosedError    this Holdfast instance was closed
   * @throws TypeError, RangeError  an invalid option; nothing was sent
   */
  override async tryAcquire(options: TryAcquireOptions = NONE): Promise<Lease | null> {
    const end = await this.#wait({ ...resolve(options, this.defaults), waitMs: 0 });
    return end instanceof Hold ? this.make(end) : null;
  }

  #wait(options: ResolvedOptions): Promise<Hold | TimedOut> {
    const { session, protocol } = this;
    return new Promise((resolveWait, reject) => {
      options.signal?.throwIfAborted();
      new RedlockWaiter(this.#quorum, protocol, this.#place, options, {
        granted: (granted) => resolveWait(hold(session, protocol, granted, options)),
        timedOut: resolveWait,
        failed: reject,
      });
    });
  }
}
