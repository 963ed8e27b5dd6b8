import type { AcquireOptions, Lease } from "holdfast";
import { ForeignLock, type ForeignParts, NONE, resolve } from "holdfast/internal";
import { lockChannel } from "../names.js";
import type { Place } from "../place.js";
import { listenOn, partsOf } from "../waiting.js";
import { fairProtocol } from "./protocol.js";

/** Maximum time that a waiter keeps its place: one year, in ms. With this limit, deadlines are exact integers. */
const LONGEST_MS = 31_536_000_000;

/**
 * Redisson's `RFairLock`: like `RedissonLock`, but Node and Java callers are served in the order of their arrival.
 *
 * The queue is on the server. Each waiter has a deadline there: its `waitMs`, or `fairWaitMs` if that is `Infinity`,
 * counted from the deadline of the waiter before it or, for the first waiter, from the end of the lease. A crashed
 * waiter is skipped only after its deadline; a waiter that gives up leaves immediately. If the lock is held for longer
 * than its waiters intended to wait, they lose their places and keep waiting at the end of the queue. An `RLock` with
 * the same name excludes this lock, but does not use the queue.
 */
export class RedissonFairLock extends ForeignLock {
  readonly #place: Place;

  /** @internal */
  constructor(place: Place) {
    super(fairParts(place, place.scope.fairWaitMs));
    this.#place = place;
  }

  /**
   * Waits until all earlier callers have been served and the lock is free, then holds it.
   *
   * @returns a lease; its token orders this grant only among grants of Holdfast
   * @throws AcquireTimeoutError  not granted within `waitMs`; nothing is held or queued; names the holder
   * @throws StoreError           the server did not reply; a grant that may have been made is released or expires
   * @throws EvictionError        the server may evict locks and this was not allowed; nothing is held
   * @throws ClosedError          this Holdfast was closed
   * @throws TypeError, RangeError  invalid option; nothing was sent
   * @throws the signal's reason, if it aborts the wait; nothing is held
   */
  override async acquire(options: AcquireOptions = NONE): Promise<Lease> {
    const { waitMs } = resolve(options, this.defaults);
    const { fairWaitMs } = this.#place.scope;
    // Like Redisson, keeps the place for as long as the caller would wait.
    const placeMs = waitMs === Infinity ? fairWaitMs : Math.min(Math.ceil(waitMs), LONGEST_MS);
    return new ForeignLock(fairParts(this.#place, placeMs)).acquire(options);
  }
}

/** Returns the parts of a fair lock. It has no local queue, because each waiter has its own place on the server. */
function fairParts(place: Place, placeMs: number): ForeignParts<Lease> {
  const { scope, raw } = place;
  return {
    ...partsOf(place, fairProtocol(place, placeMs), lockChannel(raw)),
    listen: ({ owner }, onNews) => listenOn(scope, `${lockChannel(raw)}:${owner}`, onNews),
    line: undefined,
  };
}
