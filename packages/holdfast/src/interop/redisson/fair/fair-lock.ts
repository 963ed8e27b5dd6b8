import type { AcquireOptions, Lease } from "../../../index.js";
import { NONE, resolve } from "../../../internal.js";
import { ForeignLock, type ForeignParts } from "../../foreign-lock.js";
import { lockChannel } from "../names.js";
import type { Place } from "../place.js";
import { listenOn, partsOf } from "../waiting.js";
import { fairProtocol } from "./protocol.js";

/** A year, so that a deadline stays a whole number. */
const LONGEST_MS = 31_536_000_000;

/**
 * Redisson's `RFairLock`: as `RedissonLock`, but Node and Java callers are served in the order in which they came.
 *
 * The queue is on the server, and each waiter has a deadline there: its own `waitMs`, or `fairWaitMs` where that is
 * `Infinity`, from the end of those before it. A waiter that died is passed over at that deadline, not before; one that gives
 * up leaves at once. A lock that is held for longer than its waiters meant to wait costs them their places: they go on
 * waiting, at the end of the queue. An `RLock` of the same name is excluded, but takes the lock out of turn.
 */
export class RedissonFairLock extends ForeignLock {
  readonly #place: Place;

  /** Locks come from the factory `redisson`. @internal */
  constructor(place: Place) {
    super(fairParts(place, place.scope.fairWaitMs));
    this.#place = place;
  }

  /**
   * Waits until it is this caller's turn, then holds the lock.
   *
   * @returns a lease; its token orders this grant among those of Holdfast alone
   * @throws AcquireTimeoutError  after `waitMs`; nothing is held and nothing is queued; says who has it
   * @throws StoreError           the server did not answer; what may have been granted is given back or expires
   * @throws EvictionError        the server may evict locks, and that was not allowed; nothing is held
   * @throws ClosedError          this Holdfast was closed
   * @throws TypeError, RangeError  a wrong option; nothing was sent
   * @throws the signal's reason, if it aborts the wait; nothing is held
   */
  override async acquire(options: AcquireOptions = NONE): Promise<Lease> {
    const { waitMs } = resolve(options, this.defaults);
    const { fairWaitMs } = this.#place.scope;
    // As Redisson: what the caller would wait is what its place is worth.
    const placeMs = waitMs === Infinity ? fairWaitMs : Math.min(Math.ceil(waitMs), LONGEST_MS);
    return new ForeignLock(fairParts(this.#place, placeMs)).acquire(options);
  }
}

/** Each waiter stands for itself, on a channel of its own. */
function fairParts(place: Place, placeMs: number): ForeignParts<Lease> {
  const { scope, raw } = place;
  return {
    ...partsOf(place, fairProtocol(place, placeMs), lockChannel(raw)),
    listen: ({ owner }, onNews) => listenOn(scope, `${lockChannel(raw)}:${owner}`, onNews),
    line: undefined,
  };
}
