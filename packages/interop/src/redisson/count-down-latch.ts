/** Redisson's `RCountDownLatch`. */

import { type AcquireOptions, WaitTimeoutError } from "holdfast";
import { checkWhole, ForeignWaiter, insist, lineOfOne, resolve, type TimedOut } from "holdfast/internal";
import { type RedissonLatchProtocol, redissonLatchProtocol } from "./latch-protocol.js";
import { checkRecheckMs, type RecheckOptions, waitsOf } from "./permits-lock.js";
import type { CountPlace } from "./permits-place.js";

/** Options of `RedissonCountDownLatch.await`. */
export type RedissonAwaitOptions = Pick<AcquireOptions, "waitMs" | "signal">;

const AWAIT_OPTIONS: readonly string[] = ["waitMs", "signal"];
/** Java counts in a `long`. This is the largest count that is exact in both languages. */
const COUNT_MAX = Number.MAX_SAFE_INTEGER;

/**
 * Redisson's `RCountDownLatch`: lets all waiters in Java and Node continue after a given number of count-downs. This
 * holds on one server and between failovers.
 *
 * A latch has no holders and no lease. It lives until its count reaches zero or it is deleted, so if a process crashes
 * before it counts down, that count-down is missing. A latch without a count is open. The format does not record which
 * client counted, so a job that is restarted counts again. But one call counts only once, however often its request is
 * sent, because Holdfast remembers its reply in a separate key.
 *
 * A message notifies waiters when the count reaches zero. They also check the count every `recheckMs`. On a cluster, a
 * name with a closing brace is refused: Redisson adds braces around the name in its channel, so the key and the channel
 * are in different slots.
 *
 * Algorithm: Redisson's, a count and a channel that opens and closes the latch (docs/redisson-permits.md).
 */
export class RedissonCountDownLatch {
  /** Name of the latch. */
  readonly name: string;
  readonly #place: CountPlace;
  readonly #protocol: RedissonLatchProtocol;
  readonly #recheckMs: number;

  /** @internal */
  constructor(place: CountPlace, options: RecheckOptions = {}) {
    this.name = place.name;
    this.#place = place;
    this.#protocol = redissonLatchProtocol(place);
    this.#recheckMs = checkRecheckMs(options);
  }

  /**
   * Sets the count, unless there is one.
   *
   * @param count  a whole number from 1 to 9,007,199,254,740,991
   * @returns whether this call set the count
   * @throws StoreError   outcome unknown: check `getCount()`; or the key belongs to an object of a different type
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  invalid count; nothing was sent
   */
  async trySetCount(count: number): Promise<boolean> {
    checkWhole("count", count, 1, COUNT_MAX);
    return this.#once((request, timeoutMs) => this.#protocol.trySetCount(count, request, timeoutMs));
  }

  /**
   * Decrements the count. At zero, all waiters continue.
   *
   * @returns the remaining count; 0 if there is no count
   * @throws StoreError   outcome unknown: the call may have counted, so calling again may count twice
   * @throws ClosedError  this Holdfast was closed
   */
  async countDown(): Promise<number> {
    return this.#once((request, timeoutMs) => this.#protocol.countDown(request, timeoutMs));
  }

  /** Returns the remaining count; 0 if there is no count. @throws StoreError, ClosedError */
  async getCount(): Promise<number> {
    const { session } = this.#place.scope;
    session.assertOpen(this.name);
    return insist(session, () => this.#protocol.count(session.commandTimeoutMs));
  }

  /**
   * Waits until the count is zero. Returns immediately if it is zero or there is no count.
   *
   * @param options  `waitMs` defaults to that of an acquire
   * @throws WaitTimeoutError  the count did not reach zero within `waitMs`; waiting again is safe
   * @throws the signal's reason, if it aborts the wait
   * @throws StoreError, EvictionError, ClosedError  as `Lock.acquire`
   * @throws TypeError, RangeError  invalid option; nothing was sent
   */
  async await(options: RedissonAwaitOptions = {}): Promise<void> {
    const { session, defaults } = this.#place.scope;
    const resolved = resolve(options, defaults, AWAIT_OPTIONS);
    const end = await new Promise<TimedOut | undefined>((resolveWait, reject) => {
      resolved.signal?.throwIfAborted();
      new ForeignWaiter({
        session,
        protocol: this.#protocol.wait,
        options: resolved,
        ...waitsOf(this.#place, this.#recheckMs),
        // At zero, all waiters continue together, so they need no local queue.
        line: lineOfOne(session),
        ends: { granted: () => resolveWait(undefined), timedOut: resolveWait, failed: reject },
      });
    });
    if (end === undefined) return;
    throw new WaitTimeoutError(this.name, {
      waitMs: resolved.waitMs,
      awaited: "the count did not reach zero",
      now: "waiting again is safe",
    });
  }

  /**
   * Deletes the count. All waiters continue, as at zero. If Java deletes it, only the waiters of Holdfast continue.
   *
   * @returns whether there was a count
   * @throws as `countDown`
   */
  async delete(): Promise<boolean> {
    return this.#once((request, timeoutMs) => this.#protocol.delete(request, timeoutMs));
  }

  /**
   * Sends a request until the server replies, for about two command timeouts. It takes effect once, however often it
   * arrives.
   */
  #once<Answer>(send: (request: string, timeoutMs: number) => Promise<Answer>): Promise<Answer> {
    const { session } = this.#place.scope;
    const request = session.newRequestId(this.name);
    return insist(session, () => send(request, session.commandTimeoutMs));
  }
}
