import { type MakeLease, waitForGrant } from "../core/acquire.js";
import { quote } from "../core/error-messages.js";
import { LeaseLostError, WaitTimeoutError } from "../core/errors.js";
import { Hold, hold } from "../core/hold.js";
import { type Inspection, inspect } from "../core/inspection.js";
import { askAsHolder, Lease } from "../core/lease.js";
import { type AcquireOptions, NONE, type ResolvedOptions, resolve } from "../core/options.js";
import type { Claim } from "../core/protocol.js";
import { insist } from "../core/release.js";
import type { Session } from "../core/session.js";
import { type ConditionPlace, inspectionOf, signal, waitProtocol } from "./protocol.js";

/** Maximum number of waiters that one request signals. It is limited because a script blocks all other clients. */
const BATCH = 1_000;

/**
 * The signal requests of one claim. They are sent one after the other, so that the server needs to store only the last
 * request number. Leases that share a claim continue its numbering.
 */
interface Signals {
  lastRequest: number;
  last: Promise<unknown> | undefined;
}

const signalsOf = new WeakMap<Claim, Signals>();

/**
 * A condition variable of a mutex: lets a holder wait until another holder makes something true, such as "not empty",
 * "not full" or "done".
 *
 * `wait` releases the mutex and joins the condition's queue in one step. `signal` moves the first waiter of that queue
 * to the end of the mutex's queue. When `wait` resolves, the waiter holds the mutex with a new lease and a new token.
 * No waiter polls.
 *
 * Call `wait` in a loop that checks what you wait for, because another client may hold the mutex between the signal and
 * your grant. Also, a waiter that was disconnected for a while may wake without a signal. A signal is never lost while
 * its waiter is alive: a waiter that gives up passes the signal on. A signal without waiters does nothing.
 *
 * @example
 * let lease = await mutex.acquire();
 * while (await isEmpty()) lease = await notEmpty.wait(lease, { waitMs: Infinity }); // the default is 10 s
 */
export class Condition {
  /** Name of the condition, unique within its mutex. */
  readonly name: string;
  /** Name of the mutex. */
  readonly lockName: string;
  readonly #session: Session;
  readonly #place: ConditionPlace;
  readonly #defaults: ResolvedOptions;
  readonly #make: MakeLease<Lease>;

  /** Use `mutex.condition(name)` instead. @internal */
  constructor(
    session: Session,
    name: string,
    place: ConditionPlace,
    defaults: ResolvedOptions,
    make: MakeLease<Lease>,
  ) {
    this.name = name;
    this.lockName = place.mutex.name;
    this.#session = session;
    this.#place = place;
    this.#defaults = defaults;
    this.#make = make;
  }

  /**
   * Releases the mutex, waits for a signal and then acquires the mutex again. Takes one round trip, one message for the
   * signal and one for the mutex. `lease` ends as soon as the request is sent, whatever the outcome.
   *
   * Unlike in Java, a wait that ends without a signal does not acquire the mutex again, because that could take longer
   * than the caller's limit. So after an error nothing is held, unless noted below.
   *
   * @param options  `waitMs` and `signal` limit the whole wait, for the signal and then for the mutex; `leaseMs`,
   *                 `renew`, `maxHoldMs` and `label` apply to the new lease
   * @returns the new lease; its token is higher than that of `lease`
   * @throws WaitTimeoutError  not signaled, or the mutex not acquired after the signal, within `waitMs`; nothing is
   *                           held
   * @throws the signal's reason, if `options.signal` aborts the wait; nothing is held. If the signal aborted before the
   *         call, `lease` is still held
   * @throws LeaseLostError    `lease` was lost; nothing is held
   * @throws UnsupportedError  this client cannot receive messages; `lease` is still held
   * @throws EvictionError     the server may evict locks; `lease` is still held
   * @throws StoreError        no reply; `lease` is still held if the wait had not begun; otherwise, anything that is
   *                           still held expires
   * @throws ClosedError       this Holdfast instance was closed
   * @throws TypeError, RangeError  an invalid option, or not a lease of this mutex; `lease` is still held
   */
  async wait(lease: Lease, options: AcquireOptions = NONE): Promise<Lease> {
    const resolved = resolve(options, this.#defaults);
    const held = this.#holdOf(lease);
    lease.assertHeld();
    resolved.signal?.throwIfAborted();
    const { guard, commandTimeoutMs } = this.#session;
    if (!guard.isOpen) {
      await guard.check(this.lockName);
      lease.assertHeld();
      resolved.signal?.throwIfAborted();
    }
    if (!this.#session.canReceiveGrants(this.#place)) {
      // Subscribe first: only a client that receives messages may queue. If this fails, the mutex is still held.
      await this.#session.listen(this.#place, commandTimeoutMs);
      lease.assertHeld();
      resolved.signal?.throwIfAborted();
    }

    const protocol = waitProtocol(this.#session, this.#place, held);
    const keep = (granted: Parameters<typeof hold>[2]): Hold => {
      protocol.granted();
      return hold(this.#session, this.#place.mutex, granted, resolved);
    };
    // A wait of 0 ms also releases the mutex, so it has to send the request like any other wait.
    const waiting = waitForGrant(this.#session, protocol, { ...resolved, waitMs: Math.max(1, resolved.waitMs) }, keep);
    // The request has already been sent. It ends the old lease on the server, so end it here too.
    held.end();
    lease.end("released");
    const end = await waiting;
    if (end instanceof Hold) return this.#make(end);
    throw new WaitTimeoutError(this.lockName, {
      waitMs: resolved.waitMs,
      awaited: `the condition ${quote(this.name)} was not signaled, or the mutex was not acquired after the signal,`,
      now: "the mutex is not held",
    });
  }

  /**
   * Wakes the first waiter, which continues once it is granted the mutex. Takes one round trip.
   *
   * @param lease  a lease of the mutex, which stays held
   * @returns 1, or 0 if there was no waiter
   * @throws LeaseLostError  `lease` has ended; this request signaled no waiter
   * @throws StoreError      outcome unknown; a waiter may have been signaled
   * @throws TypeError       not a lease of this mutex
   */
  signal(lease: Lease): Promise<number> {
    return this.#signal(lease, false);
  }

  /**
   * Wakes all current waiters. Each continues once it is granted the mutex. Takes one round trip per 1,000 waiters.
   *
   * @param lease  a lease of the mutex, which stays held
   * @returns the number of waiters
   * @throws as `signal`
   */
  signalAll(lease: Lease): Promise<number> {
    return this.#signal(lease, true);
  }

  /** Returns the claims waiting for a signal, in order of arrival. `holders` is always empty. @throws StoreError */
  inspect(): Promise<Inspection> {
    return inspect(this.#session, inspectionOf(this.#place));
  }

  async #signal(lease: Lease, isAll: boolean): Promise<number> {
    const held = this.#holdOf(lease);
    lease.assertHeld();
    const signals = signalsOf.get(held.grant.claim) ?? { lastRequest: 0, last: undefined };
    signalsOf.set(held.grant.claim, signals);
    const before = signals.last;
    const move = (): Promise<number> => this.#move(lease, held, signals, isAll);
    const done = before === undefined ? move() : before.then(move);
    const settled = done.then(
      () => {},
      () => {},
    );
    signals.last = settled;
    try {
      return await done;
    } finally {
      if (signals.last === settled) signals.last = undefined;
    }
  }

  async #move(lease: Lease, held: Hold, signals: Signals, isAll: boolean): Promise<number> {
    const { owner, token, grant } = held;
    const ask = (): ReturnType<typeof signal> => {
      signals.lastRequest += 1;
      const request = signals.lastRequest;
      return insist(this.#session, () =>
        signal(this.#place, { owner, token: grant.token }, request, isAll ? BATCH : 1, this.#session.commandTimeoutMs),
      );
    };
    for (let moved = 0; ; ) {
      const reply = await askAsHolder(lease, ask, ({ outcome }) => outcome !== "signalled");
      if (reply.outcome !== "signalled") {
        const reason = held.validForMs() > 0 ? "server-lost" : "expired";
        held.lose(reason);
        lease.assertHeld();
        throw new LeaseLostError(this.lockName, { reason, owner, token });
      }
      moved += reply.moved;
      if (reply.left === 0 || (!isAll && moved > 0)) return moved;
    }
  }

  #holdOf(lease: Lease): Hold {
    const held = lease instanceof Lease ? Lease.holdingOf(lease) : undefined;
    if (!(held instanceof Hold) || held.kind !== "mutex" || held.lockKey !== this.#place.lock) {
      throw new TypeError(`lease must be a lease of the mutex ${quote(this.lockName)}`);
    }
    return held;
  }
}
