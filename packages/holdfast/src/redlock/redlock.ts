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
 * Mutual exclusion across processes on a majority of independent servers: at most one live lease per name, with a
 * minority of the servers away.
 *
 * Not reentrant: a holder that acquires again waits for itself.
 *
 * No order among waiters of different processes: each tries to win a majority, and whoever fails stays away for a random
 * while, or until it hears that the lock was given back. Tokens of acquisitions that do not overlap rise in their order,
 * whatever the clocks do; those of overlapping ones never repeat. A holder that dies blocks the others until its lease
 * ends. A server that lost its memory has no vote until a majority of the others have said how long leases are, and the longest
 * one is over (docs/kinds/redlock.md#restarts). Leases may differ in length.
 *
 * Algorithm: Redlock (redis.io, "Distributed Locks with Redis"), with tokens of our own on top
 * (docs/adr/092-tokens-on-a-quorum.md).
 */
export class Redlock extends Lock {
  readonly #quorum: Quorum;
  readonly #place: RedlockPlace;

  /** @internal */
  constructor(quorum: Quorum, place: RedlockPlace, defaults: ResolvedOptions) {
    const { session, servers, quorumCleanups, memories } = quorum;
    const touch = (): Promise<void> => quorum.touch(place);
    const make: MakeLease<Lease> = (held) => new Lease(held);
    super(
      session,
      redlockProtocol({ servers, quorumCleanups, memories, place, inbox: session.inboxPrefix, touch }),
      defaults,
      make,
    );
    this.#quorum = quorum;
    this.#place = place;
  }

  /**
   * Waits until a majority of the servers grants the lock, then holds it.
   *
   * One round trip if it is free and the servers stand at the same number, as they do after an acquire that had the same
   * ones; two if they do not.
   *
   * @returns a lease whose token is higher than that of every earlier one of this name that had been granted before the call
   * @throws AcquireTimeoutError  after `waitMs`; nothing is held
   * @throws QuorumError          no majority of the servers answered; nothing is held, and what single servers have
   *                              granted is given back or expires
   * @throws EvictionError        a server may evict locks, and that was not allowed; nothing is held
   * @throws ClosedError          this Holdfast was closed
   * @throws TypeError, RangeError  a wrong option; nothing was sent
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
   * Takes the lock only if a majority of the servers grants it now. One attempt.
   *
   * @returns null if someone else holds it, or tries to just now
   * @throws QuorumError    no majority of the servers answered; nothing is held
   * @throws EvictionError  a server may evict locks, and that was not allowed; nothing is held
   * @throws ClosedError    this Holdfast was closed
   * @throws TypeError, RangeError  a wrong option; nothing was sent
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
