/**
 * A count that is never taken below its least: stock, seats, a quota.
 *
 * It is no lock. What a lock would protect, to read and then to write, is one script here, so nobody can come in between, nobody has
 * to wait, and no lease can end in the middle of it. Each request is remembered by its id, so that one whose answer was
 * lost can be made again.
 */

import { recipesCounterChange, recipesCounterRead } from "../../generated/recipes-scripts.js";
import type { Holdfast } from "../../index.js";
import type { Filled } from "../../internal.js";
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
} from "../../internal.js";
import { CounterRequestError } from "./errors.js";

/** How a count is kept. Everybody who takes from it gives the same. */
export interface CounterOptions {
  /** The least that may be left after something was taken. Whole, -10^15 to 10^15. @default 0 */
  readonly min?: number | undefined;
  /**
   * How long a request is remembered, and never less than 20 s and five command time-outs. The same id later is a new request. Longer takes more memory, some hundred bytes for each
   * request. Whole milliseconds, 1,000 to 31,536,000,000.
   * @default 86_400_000, a day
   */
  readonly keepMs?: number | undefined;
}

/** Which take or put is meant. */
export interface CounterRequest {
  /**
   * What is the same when the request is made again, and is nobody else's: an order, not a customer. 1 to 256 bytes. A take and its
   * undoing are two requests.
   */
  readonly requestId: string;
}

/** A count on the server. */
export interface Counter {
  readonly name: string;

  /**
   * Takes `amount`, if no less than `min` is left then.
   *
   * @param amount  whole, 1 to 10^15
   * @returns what was left; null if there was not enough, and nothing was taken. For a request that came before, what it was answered
   *          then, also if there is enough now
   * @throws CounterRequestError  the id belongs to another take or put; nothing was taken
   * @throws StoreError           outcome unknown; calling it again with the same id is safe, and tells
   * @throws ClosedError, TypeError, RangeError  nothing was sent
   */
  take(amount: number, request: CounterRequest): Promise<number | null>;

  /**
   * Puts `amount` there: a delivery, or what was taken and is given back.
   *
   * @param amount  whole, 1 to 10^15
   * @returns what was there afterwards; for a request that came before, what it was answered then
   * @throws RangeError  there would be more than 10^15; nothing was put
   * @throws CounterRequestError, StoreError, ClosedError, TypeError  as `take`
   */
  put(amount: number, request: CounterRequest): Promise<number>;

  /**
   * What is there now, for people: by the time it is read it may be less. 0 if nothing was ever put.
   *
   * @throws StoreError, ClosedError
   */
  read(): Promise<number>;
}

/** Well below where numbers are not exact any more, in Lua, here, or in a client library that reads them. */
const MOST = 1_000_000_000_000_000;
const DAY_MS = 86_400_000;
const YEAR_MS = 31_536_000_000;
const REMEMBER_MIN_MS = 20_000;
const REMEMBER_TIMEOUTS = 5;

/**
 * The count of that name. Costs nothing and needs no clean-up; what was counted stays until it is deleted.
 *
 * Promised, while the server forgets nothing: never less than `min` is left by a take, and a request counts once however often it is
 * made within `keepMs`. A server that lost the count has none left, and takes nothing; one that lost the last takes in a failover
 * gives them away again.
 *
 * @param holdfast  what `createHoldfast` returned, on one server, behind Sentinel or on a cluster
 * @param name      1 to 512 bytes
 * @throws TypeError, RangeError  a wrong argument
 * @throws UnsupportedError       that Holdfast is on several independent servers
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
    if (left === null) throw new Error("a put is never short");
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

  /** @returns what is left; null if there is not enough */
  async #change(sign: 1 | -1, amount: number, request: CounterRequest): Promise<number | null> {
    checkWhole("amount", amount, 1, MOST);
    const requestId = checkRequestId(checkKnown(request, ["requestId"]).requestId);
    const { session } = this.#internals;
    session.assertOpen(this.name);
    const keys = { count: this.#key, request: `${this.#key}:request:${escaped(requestId)}` };
    const change = sign * amount;
    // Holdfast itself asks again for as long as that, and a request that is forgotten by then would count twice.
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
        throw new RangeError(`amount must leave ${MOST} at most; there are ${reply.left}, and got ${amount}`);
    }
  }
}

/** The key of a count ends in a brace. No request's key may, or it could be that of another count. */
function escaped(requestId: string): string {
  return requestId.replace(/[%}]/g, encodeURIComponent);
}
