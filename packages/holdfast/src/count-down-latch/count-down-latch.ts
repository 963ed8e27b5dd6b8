import { waitForGrant } from "../core/acquire.js";
import { WaitTimeoutError } from "../core/errors.js";
import { describe, type WaitingClaim } from "../core/inspection.js";
import { checkCallerId, show, unknownOption } from "../core/keys.js";
import { type AcquireOptions, checkWhole, type ResolvedOptions, resolve } from "../core/options.js";
import { insist } from "../core/release.js";
import type { Session } from "../core/session.js";
import type { LatchProtocol } from "./protocol.js";

/** What a latch can be told when it is made. */
export interface LatchOptions {
  /**
   * How long the count is kept after it was last changed or waited for. Longer serves jobs that take longer; shorter
   * leaves less behind. Whole milliseconds, 1,000 to 31,536,000,000 (a year).
   * @default 86_400_000 (a day)
   */
  readonly keepMs?: number | undefined;
}

/** How to wait for something that is not held afterwards. */
export type AwaitOptions = Pick<AcquireOptions, "waitMs" | "signal" | "label">;

/** What `inspect` tells about a latch. A snapshot: it may have changed when you read it. */
export interface LatchInspection {
  readonly kind: "count-down-latch";
  readonly name: string;
  /** What is left; 0 when it is open or not set. */
  readonly count: number;
  /** What it was set to; 0 when it is not set. */
  readonly initialCount: number;
  readonly waiterCount: number;
  /** The first 100 of those who wait, the one that came first first. */
  readonly waiters: readonly WaitingClaim[];
}

const AWAIT_OPTIONS: readonly string[] = ["waitMs", "signal", "label"];
const COUNT_MAX = 1_000_000_000;

/**
 * Lets any number of waiters go on, in all processes, once something has happened a number of times: all parts are
 * loaded, all workers have finished.
 *
 * Nobody holds it and nothing of it is leased: a process that dies before it counted down is one count-down that does
 * not come. A caller id counts once, so a job that is started again cannot count twice. At zero all who wait are told
 * in one step, and whoever comes later goes on at once. Then a new count may be set.
 *
 * A latch that was not set is open: set it before anybody waits.
 */
export class CountDownLatch {
  /** Name of the latch. */
  readonly name: string;
  readonly #session: Session;
  readonly #protocol: LatchProtocol;
  readonly #defaults: ResolvedOptions;

  /** Latches come from the factory of a Holdfast. @internal */
  constructor(session: Session, protocol: LatchProtocol, defaults: ResolvedOptions) {
    this.name = protocol.name;
    this.#session = session;
    this.#protocol = protocol;
    this.#defaults = defaults;
  }

  /**
   * Sets the count, unless one is set that has not reached zero. One round trip.
   *
   * @param count  whole number, 1 to 1,000,000,000
   * @returns whether this call set it
   * @throws StoreError   outcome unknown: look at `count()`
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  a wrong count
   */
  async trySetCount(count: number): Promise<boolean> {
    checkWhole("count", count, 1, COUNT_MAX);
    const request = this.#session.newRequestId(this.name);
    return insist(this.#session, () => this.#protocol.setCount(count, request, this.#session.commandTimeoutMs));
  }

  /**
   * Takes `by` off the count, but not below zero. One round trip, and at zero one message to each waiter.
   *
   * @param by       whole number, 1 to 1,000,000,000
   * @param options  `callerId`: counts once until a new count is set, however often it is used, in any process;
   *                 1 to 256 bytes. Without one each call counts, once however often it has to be sent
   * @returns what is left; 0 also if no count is set
   * @throws StoreError   outcome unknown: the same call with a `callerId` is safe, without one it may count twice
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  a wrong argument
   */
  async countDown(by = 1, options: { readonly callerId?: string | undefined } = {}): Promise<number> {
    checkWhole("by", by, 1, COUNT_MAX);
    if (options === null || typeof options !== "object") {
      throw new TypeError(`options must be an object; got ${show(options)}`);
    }
    const { callerId, ...others } = options;
    // A caller id that is not seen would count again and again.
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) throw unknownOption(unknown, ["callerId"]);
    if (callerId !== undefined) checkCallerId(callerId);
    this.#session.assertOpen(this.name);
    const request = `/${this.#session.newRequestId(this.name)}`;
    const caller = callerId === undefined ? "" : `:${callerId}`;
    return insist(this.#session, () => this.#protocol.countDown(request, caller, by, this.#session.commandTimeoutMs));
  }

  /**
   * Waits until the count is zero; at once if it is, or if none is set. One round trip, and a message.
   *
   * @throws WaitTimeoutError  after `waitMs` (by default as long as an acquire waits)
   * @throws the signal's reason, if it aborts the wait
   * @throws StoreError, EvictionError, ClosedError  as when a lock is acquired
   * @throws TypeError, RangeError  a wrong option; nothing was sent
   */
  async await(options: AwaitOptions = {}): Promise<void> {
    const resolved = resolve(options, this.#defaults, AWAIT_OPTIONS);
    const end = await waitForGrant(this.#session, this.#protocol.wait(), resolved);
    if ("token" in end) return;
    throw new WaitTimeoutError(this.name, {
      waitMs: resolved.waitMs,
      awaited: "the count of zero",
      now: "waiting again is safe",
    });
  }

  /** What is left; 0 also if no count is set. One round trip. @throws StoreError, ClosedError */
  async count(): Promise<number> {
    this.#session.assertOpen(this.name);
    return (await this.#protocol.inspect(undefined, this.#session.commandTimeoutMs)).count;
  }

  /** The count, and who waits. Changes nothing. @throws StoreError, ClosedError */
  async inspect(): Promise<LatchInspection> {
    this.#session.assertOpen(this.name);
    const state = await this.#protocol.inspect(undefined, this.#session.commandTimeoutMs);
    const { waiterCount, waiters } = await describe(this.#session, this.#protocol, state);
    const { count, initialCount } = state;
    return { kind: "count-down-latch", name: this.name, count, initialCount, waiterCount, waiters };
  }
}
