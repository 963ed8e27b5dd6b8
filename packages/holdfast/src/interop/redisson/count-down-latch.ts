/** Redisson's `RCountDownLatch`. */
import { type AcquireOptions, WaitTimeoutError } from "../../index.js";
import { checkWhole, insist, resolve, type TimedOut } from "../../internal.js";
import { ForeignWaiter } from "../foreign-waiter.js";
import { lineOfOne } from "../line.js";
import { type RedissonLatchProtocol, redissonLatchProtocol } from "./latch-protocol.js";
import { checkRecheckMs, type RecheckOptions, waitsOf } from "./permits-lock.js";
import type { CountPlace } from "./permits-place.js";

/** How to wait for zero. */
export type RedissonAwaitOptions = Pick<AcquireOptions, "waitMs" | "signal">;

const AWAIT_OPTIONS: readonly string[] = ["waitMs", "signal"];
/** Java takes a `long`; this much is exact in either. */
const COUNT_MAX = Number.MAX_SAFE_INTEGER;

/**
 * Redisson's `RCountDownLatch`: lets any number of waiters go on, in Java and Node, once something has happened a number of
 * times; on one server, between failovers.
 *
 * Nobody holds it, nothing of it is leased, and it lives until it is counted down or deleted: a process that dies before it
 * counted down is one count-down that does not come. A latch without a count is open. The format does not say who counted, so
 * a job that is started again counts again; but one call counts once, however often its request has to be sent, since the
 * answer is remembered beside the count.
 *
 * A waiter hears of zero by a message, and looks at the count every `recheckMs` in any case. On a cluster a name with a closing
 * brace is refused: Redisson puts braces around it for its channel, and then the two are in different slots.
 *
 * Algorithm: Redisson's, a count and a channel that opens and closes the gate (docs/redisson-permits.md).
 */
export class RedissonCountDownLatch {
  /** Name of the latch. */
  readonly name: string;
  readonly #place: CountPlace;
  readonly #protocol: RedissonLatchProtocol;
  readonly #recheckMs: number;

  /** Latches come from the factory `redisson`. @internal */
  constructor(place: CountPlace, options: RecheckOptions = {}) {
    this.name = place.name;
    this.#place = place;
    this.#protocol = redissonLatchProtocol(place);
    this.#recheckMs = checkRecheckMs(options);
  }

  /**
   * Sets the count, unless there is one.
   *
   * @param count  whole number, 1 to 9,007,199,254,740,991
   * @returns whether this call set it
   * @throws StoreError   outcome unknown: look at `getCount()`; or the name belongs to something else
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  a wrong count; nothing was sent
   */
  async trySetCount(count: number): Promise<boolean> {
    checkWhole("count", count, 1, COUNT_MAX);
    return this.#once((request, timeoutMs) => this.#protocol.trySetCount(count, request, timeoutMs));
  }

  /**
   * Takes one off the count; at zero, everybody who waits goes on.
   *
   * @returns what is left; 0 also if there is no count
   * @throws StoreError   outcome unknown: it may have counted, and calling again may count twice
   * @throws ClosedError  this Holdfast was closed
   */
  async countDown(): Promise<number> {
    return this.#once((request, timeoutMs) => this.#protocol.countDown(request, timeoutMs));
  }

  /** What is left; 0 also if there is no count. @throws StoreError, ClosedError */
  async getCount(): Promise<number> {
    const { session } = this.#place.scope;
    session.assertOpen(this.name);
    return insist(session, () => this.#protocol.count(session.commandTimeoutMs));
  }

  /**
   * Waits until the count is zero; at once if it is, or if there is none.
   *
   * @throws WaitTimeoutError  after `waitMs` (by default as long as an acquire waits); waiting again is safe
   * @throws the signal's reason, if it aborts the wait
   * @throws StoreError, EvictionError, ClosedError  as when a lock is acquired
   * @throws TypeError, RangeError  a wrong option; nothing was sent
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
        // All go on at once, so nobody stands behind another.
        line: lineOfOne(session),
        ends: { granted: () => resolveWait(undefined), timedOut: resolveWait, failed: reject },
      });
    });
    if (end === undefined) return;
    throw new WaitTimeoutError(this.name, {
      waitMs: resolved.waitMs,
      awaited: "the count of zero",
      now: "waiting again is safe",
    });
  }

  /**
   * Forgets the count, and everybody who waits goes on, as at zero. Where Java deletes a latch, Java's own waiters stay where
   * they are; ours go on.
   *
   * @returns whether there was a count
   * @throws as `countDown`
   */
  async delete(): Promise<boolean> {
    return this.#once((request, timeoutMs) => this.#protocol.delete(request, timeoutMs));
  }

  /** Sends a request until it is answered; it counts once, however often it arrives. */
  #once<Answer>(send: (request: string, timeoutMs: number) => Promise<Answer>): Promise<Answer> {
    const { session } = this.#place.scope;
    const request = session.newRequestId(this.name);
    return insist(session, () => send(request, session.commandTimeoutMs));
  }
}
