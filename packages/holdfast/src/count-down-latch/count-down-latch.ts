import { waitForGrant } from "../core/acquire.js";
import { WaitTimeoutError } from "../core/errors.js";
import { describe, type WaitingClaim } from "../core/inspection.js";
import { checkCallerId, show, unknownOption } from "../core/keys.js";
import { type AcquireOptions, checkWhole, type ResolvedOptions, resolve } from "../core/options.js";
import { insist } from "../core/release.js";
import type { Session } from "../core/session.js";
import type { LatchProtocol } from "./protocol.js";

/** The configuration of a latch. */
export interface LatchOptions {
  /**
   * How long the server keeps the count after a process last changed it or waited for it. A longer time suits
   * longer jobs; a shorter time frees memory earlier. Whole milliseconds from 1,000 to 31,536,000,000 (a year).
   * @default 86_400_000 (a day)
   */
  readonly keepMs?: number | undefined;
}

/** Options of `await`. */
export type AwaitOptions = Pick<AcquireOptions, "waitMs" | "signal" | "label">;

/** The state of a latch, as returned by `inspect`. A snapshot: the state may have changed by the time you read it. */
export interface LatchInspection {
  /** Kind of the lock. */
  readonly kind: "count-down-latch";
  /** Name of the latch. */
  readonly name: string;
  /** The remaining count; 0 if the latch is open or not set. */
  readonly count: number;
  /** The count that the latch was set to; 0 if it is not set. */
  readonly initialCount: number;
  /** The number of waiters. `waiters` may list fewer. */
  readonly waiterCount: number;
  /** The first 100 waiters, in order of arrival. */
  readonly waiters: readonly WaitingClaim[];
}

const AWAIT_OPTIONS: readonly string[] = ["waitMs", "signal", "label"];
const COUNT_MAX = 1_000_000_000;

/**
 * Lets waiters in all processes continue once something has happened a given number of times: for example, once all
 * parts are loaded or all workers have finished.
 *
 * A latch has no holder and no lease, so if a process crashes before it counts down, its count-down is missing. A
 * caller id counts once, so a restarted job cannot count twice. When the count reaches zero, all waiters are notified
 * in one step, and later callers do not wait. Then a new count can be set.
 *
 * A latch that has not been set is open, so set it before any process waits.
 *
 * @example
 * const loaded = holdfast.countDownLatch("import:7");
 * await loaded.trySetCount(parts.length); // before any process waits
 *
 * // in each worker, when it has loaded a part:
 * await loaded.countDown(1, { callerId: part.id });
 *
 * // in the process that continues when all parts are loaded:
 * await loaded.await({ waitMs: 60_000 });
 */
export class CountDownLatch {
  /** Name of the latch. */
  readonly name: string;
  readonly #session: Session;
  readonly #protocol: LatchProtocol;
  readonly #defaults: ResolvedOptions;

  /** Use the factory of a Holdfast instance instead. @internal */
  constructor(session: Session, protocol: LatchProtocol, defaults: ResolvedOptions) {
    this.name = protocol.name;
    this.#session = session;
    this.#protocol = protocol;
    this.#defaults = defaults;
  }

  /**
   * Sets the count if none is set or the current one has reached zero. Takes one round trip.
   *
   * @param count  a whole number from 1 to 1,000,000,000
   * @returns whether this call set the count
   * @throws StoreError   outcome unknown; check `count()`
   * @throws ClosedError  this Holdfast instance was closed
   * @throws TypeError, RangeError  an invalid count; nothing was sent
   */
  async trySetCount(count: number): Promise<boolean> {
    checkWhole("count", count, 1, COUNT_MAX);
    const request = this.#session.newRequestId(this.name);
    return insist(this.#session, () => this.#protocol.setCount(count, request, this.#session.commandTimeoutMs));
  }

  /**
   * Subtracts `by` from the count, but not below zero. Takes one round trip. At zero, the server also sends one message
   * to each of the first 10,000 waiters.
   *
   * @param by       a whole number from 1 to 1,000,000,000
   * @param options  `callerId`, 1 to 256 bytes: all calls with the same id, in any process, count once until a new
   *                 count is set. Without it, every call counts once, even if its request is retried
   * @returns the remaining count; 0 if no count is set
   * @throws StoreError   outcome unknown; with a `callerId`, repeating the call is safe; without one, it may count
   *                      twice
   * @throws ClosedError  this Holdfast instance was closed
   * @throws TypeError, RangeError  an invalid argument; nothing was sent
   */
  async countDown(by = 1, options: { readonly callerId?: string | undefined } = {}): Promise<number> {
    checkWhole("by", by, 1, COUNT_MAX);
    if (options === null || typeof options !== "object") {
      throw new TypeError(`options must be an object; got ${show(options)}`);
    }
    const { callerId, ...others } = options;
    // A misspelled `callerId` must not be ignored, because every repeated call would then count.
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) throw unknownOption(unknown, ["callerId"]);
    if (callerId !== undefined) checkCallerId(callerId);
    this.#session.assertOpen(this.name);
    const request = `/${this.#session.newRequestId(this.name)}`;
    const caller = callerId === undefined ? "" : `:${callerId}`;
    return insist(this.#session, () => this.#protocol.countDown(request, caller, by, this.#session.commandTimeoutMs));
  }

  /**
   * Waits until the count is zero. Resolves after one round trip if the count is already zero or not set; otherwise a
   * message ends the wait.
   *
   * @throws WaitTimeoutError  after `waitMs` (by default as long as an acquire waits)
   * @throws the signal's reason, if it aborts the wait
   * @throws StoreError, EvictionError, ClosedError  as when a lock is acquired
   * @throws TypeError, RangeError  an invalid option; nothing was sent
   */
  async await(options: AwaitOptions = {}): Promise<void> {
    const resolved = resolve(options, this.#defaults, AWAIT_OPTIONS);
    const end = await waitForGrant(this.#session, this.#protocol.wait(), resolved);
    if ("token" in end) return;
    throw new WaitTimeoutError(this.name, {
      waitMs: resolved.waitMs,
      awaited: "the count did not reach zero",
      now: "waiting again is safe",
    });
  }

  /** Returns the remaining count; 0 if no count is set. Takes one round trip. @throws StoreError, ClosedError */
  async count(): Promise<number> {
    this.#session.assertOpen(this.name);
    return (await this.#protocol.inspect(undefined, this.#session.commandTimeoutMs)).count;
  }

  /** Returns the count and the waiters. Read-only. @throws StoreError, ClosedError */
  async inspect(): Promise<LatchInspection> {
    this.#session.assertOpen(this.name);
    const state = await this.#protocol.inspect(undefined, this.#session.commandTimeoutMs);
    const { waiterCount, waiters } = await describe(this.#session, this.#protocol, state);
    const { count, initialCount } = state;
    return { kind: "count-down-latch", name: this.name, count, initialCount, waiterCount, waiters };
  }
}
