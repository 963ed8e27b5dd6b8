/**
 * A count that is never taken below a minimum, such as stock, seats or a quota.
 *
 * It is not a lock. One script reads and writes the count, so callers cannot interfere, need not wait, and hold no
 * lease that could end meanwhile. The server remembers each request by its id, so a caller can safely retry one whose
 * reply was lost.
 */

import type { Holdfast } from "holdfast";
import type { Filled } from "holdfast/internal";
import {
  call,
  checkKnown,
  checkName,
  checkRequestId,
  checkWhole,
  type Internals,
  insist,
  internalsOf,
  lockKeys,
  show,
} from "holdfast/internal";
import { recipesCounterChange, recipesCounterRead } from "../generated/counter.js";
import { CounterRequestError } from "./errors.js";

/** Options of `counter`. All callers of a count must use the same options. */
export interface CounterOptions {
  /** Minimum count that a take must leave. A whole number from -10^15 to 10^15. @default 0 */
  readonly min?: number | undefined;
  /**
   * How long a request is remembered. At least 20 seconds and five command timeouts. After that, the same id is a
   * new request. A longer time takes more memory: a few hundred bytes per request. Whole milliseconds, 1,000 to
   * 31,536,000,000.
   * @default 86_400_000 (one day)
   */
  readonly keepMs?: number | undefined;
}

/** Identifies a take or a put. */
export interface CounterRequest {
  /**
   * Id of the request, the same for each retry and different from every other request: use the order's id, not the
   * customer's. A take and the put that undoes it are two requests. 1 to 256 bytes.
   */
  readonly requestId: string;
}

/** A count on the server. */
export interface Counter {
  /** Name of the count. */
  readonly name: string;

  /**
   * Takes `amount` if at least `min` is left afterward.
   *
   * @param amount  a whole number from 1 to 10^15
   * @returns the count that was left; null if there was not enough, and nothing was taken. A repeated request gets its
   *          first result, even if there is enough now
   * @throws CounterRequestError  the id belongs to another take or put; nothing was taken
   * @throws StoreError           outcome unknown; calling it again with the same id is safe and returns the outcome
   * @throws ClosedError, TypeError, RangeError  nothing was sent
   */
  take(amount: number, request: CounterRequest): Promise<number | null>;

  /**
   * Adds `amount`, such as a delivery or a return.
   *
   * @param amount  a whole number from 1 to 10^15
   * @returns the count afterward; a repeated request gets its first result
   * @throws RangeError  the count would exceed 10^15, or an invalid amount; nothing was added
   * @throws CounterRequestError, StoreError, ClosedError, TypeError  as `take`
   */
  put(amount: number, request: CounterRequest): Promise<number>;

  /**
   * Returns the current count, 0 if nothing was ever added. It may have changed by the time you read it, so do not base
   * decisions on it.
   *
   * @throws StoreError, ClosedError
   */
  read(): Promise<number>;
}

/** Maximum count. Well below the limit of exact numbers in Lua, in JavaScript and in client libraries. */
const MOST = 1_000_000_000_000_000;
const DAY_MS = 86_400_000;
const YEAR_MS = 31_536_000_000;
const REMEMBER_MIN_MS = 20_000;
const REMEMBER_TIMEOUTS = 5;

/**
 * Returns the count with the given name. Sends nothing. The count stays on the server until it is deleted.
 *
 * Guarantees, as long as the server loses no data: a take never leaves less than `min`, and a request counts once
 * within `keepMs`, even if it is repeated. A server that lost the count starts from 0. A server that lost the last
 * takes in a failover can give those units away again.
 *
 * @param holdfast  the object returned by `createHoldfast`, on one server, behind Sentinel or on a cluster
 * @param name      1 to 512 bytes
 * @throws TypeError, RangeError  an invalid argument
 * @throws UnsupportedError       this Holdfast uses several independent servers
 *
 * @example
 * const stock = counter(holdfast, "stock:42");
 * await stock.put(100, { requestId: delivery.id });
 * const left = await stock.take(1, { requestId: order.id });
 * if (left === null) throw new Error("sold out");
 */
export function counter(holdfast: Holdfast, name: string, options: CounterOptions = {}): Counter {
  const { min = 0, keepMs = DAY_MS } = checkKnown(options, ["min", "keepMs"]);
  checkName(name);
  checkWhole("min", min, -MOST, MOST);
  checkWhole("keepMs", keepMs, 1_000, YEAR_MS);
  return new CounterOnServer(internalsOf(holdfast, name), name, { min, keepMs });
}

class CounterOnServer implements Counter {
  readonly name: string;
  readonly #internals: Internals;
  readonly #options: Filled<CounterOptions>;
  readonly #key: string;

  constructor(found: Internals, name: string, options: Filled<CounterOptions>) {
    this.name = name;
    this.#internals = found;
    this.#options = options;
    this.#key = lockKeys(found.prefix, "counter", name).base;
  }

  take(amount: number, request: CounterRequest): Promise<number | null> {
    return this.#change(-1, amount, request);
  }

  async put(amount: number, request: CounterRequest): Promise<number> {
    const left = await this.#change(1, amount, request);
    if (left === null) throw new Error("unexpected reply: the server refused a put");
    return left;
  }

  async read(): Promise<number> {
    const { session } = this.#internals;
    session.assertOpen(this.name);
    const caller = { store: session.store, name: this.name };
    const reply = await insist(session, () =>
      call(caller, recipesCounterRead, { count: this.#key }, {}, session.commandTimeoutMs),
    );
    return reply.left;
  }

  /** @returns the count afterward; null if there was not enough */
  async #change(sign: 1 | -1, amount: number, request: CounterRequest): Promise<number | null> {
    checkWhole("amount", amount, 1, MOST);
    const requestId = checkRequestId(checkKnown(request, ["requestId"]).requestId);
    const { session } = this.#internals;
    session.assertOpen(this.name);
    const keys = { count: this.#key, request: `${this.#key}:request:${escaped(requestId)}` };
    const change = sign * amount;
    // The server must remember the request for longer than Holdfast retries it; otherwise a retry could count twice.
    const keepMs = Math.max(this.#options.keepMs, REMEMBER_MIN_MS, REMEMBER_TIMEOUTS * session.commandTimeoutMs);
    const args = { change, ...this.#options, keepMs, max: MOST };
    const caller = { store: session.store, name: this.name };
    const reply = await insist(session, () => call(caller, recipesCounterChange, keys, args, session.commandTimeoutMs));
    switch (reply.outcome) {
      case "changed":
        return reply.left;
      case "short":
        return null;
      case "another":
        throw new CounterRequestError(this.name, { requestId, change, first: reply.change });
      case "over":
        throw new RangeError(
          `${show(this.name)} was not changed: adding amount ${amount} to ${reply.left} would exceed the maximum of ${MOST}`,
        );
    }
  }
}

/**
 * Escapes closing braces. The key of a count ends in one, and a request's key must not equal the key of another count.
 */
function escaped(requestId: string): string {
  return requestId.replace(/[%}]/g, encodeURIComponent);
}
