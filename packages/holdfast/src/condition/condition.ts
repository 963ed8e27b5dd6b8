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
import { type ConditionPlace, looking, signal, waitProtocol } from "./protocol.js";

/** How many waiters one call signals at most: while a script runs, the server answers nobody else. */
const BATCH = 1_000;

/**
 * The signals of one claim go out one after the other, so that the server need remember only the last. Leases that share
 * a claim go on counting where the one before has stopped.
 */
interface Signals {
  lastRequest: number;
  last: Promise<unknown> | undefined;
}

const signalsOf = new WeakMap<Claim, Signals>();

/**
 * Waiting, with a mutex, for something that another holder brings about: "not empty", "not full", "done".
 *
 * A holder that finds it not so yet waits: in one step it gives the mutex to the next waiter and enters the
 * condition's queue. A holder that has brought it about signals: the waiter that came first goes to the end of the
 * mutex's queue, and holds the mutex, by a new lease with a new token, when `wait` resolves. Nothing polls.
 *
 * Check what you wait for in a loop: somebody else may hold the mutex between the signal and you, and a waiter whose
 * connection was away for a while may wake without a signal. A signal is never lost while its waiter lives: one that
 * gives up passes it on. A signal while nobody waits does nothing.
 *
 * @example
 * let lease = await mutex.acquire();
 * while (await isEmpty()) lease = await notEmpty.wait(lease, { waitMs: Infinity }); // 10 s unless it is said
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

  /** Conditions come from `mutex.condition(name)`. @internal */
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
   * Gives the mutex up until a signal comes, then holds it again. One round trip, a message for the signal and one for
   * the mutex. `lease` is over as soon as the request is sent, whatever comes of it.
   *
   * Unlike in Java, a wait that ends without a signal does not take the mutex back: that could take as long again, and
   * no limit would be left that the caller has set. So after any error nothing is held, except where it says otherwise.
   *
   * @param options  `waitMs` and `signal` limit the whole wait, for the signal and for the mutex after it; `leaseMs`,
   *                 `renew`, `maxHoldMs` and `label` are those of the new lease
   * @returns the new lease; its token is higher than that of `lease`
   * @throws WaitTimeoutError  no signal, or not the mutex after it, within `waitMs`; nothing is held
   * @throws the signal's reason, if it aborts the wait; nothing is held. If it was aborted before, `lease` still is
   * @throws LeaseLostError    `lease` was lost; nothing is held
   * @throws UnsupportedError  this client cannot be told of a signal; `lease` is still held
   * @throws EvictionError     the server may evict locks; `lease` is still held
   * @throws StoreError        the server did not answer; what is held ends by itself, unless it was before the wait began
   * @throws ClosedError       this Holdfast was closed
   * @throws TypeError, RangeError  a wrong option, or not a lease of this mutex; `lease` is still held
   */
  async wait(lease: Lease, options: AcquireOptions = NONE): Promise<Lease> {
    const resolved = resolve(options, this.#defaults);
    const held = this.#holdOf(lease);
    lease.assertHeld();
    resolved.signal?.throwIfAborted();
    const { guard, commandTimeoutMs, runtime } = this.#session;
    if (!guard.isOpen) {
      await guard.check(this.lockName);
      lease.assertHeld();
      resolved.signal?.throwIfAborted();
    }
    if (!this.#session.canBeTold(this.#place)) {
      // Only who can be told may enter the queue, and only before that can the mutex still be kept.
      await this.#session.listen(this.#place, commandTimeoutMs);
      lease.assertHeld();
      resolved.signal?.throwIfAborted();
    }

    const validUntilMs = runtime.monotonicMs() + held.validForMs();
    const { owner, token: leaseToken, grant } = held;
    const protocol = waitProtocol(
      this.#place,
      { owner, token: grant.token, leaseToken },
      () => this.#session.commandReconnects,
      () => runtime.monotonicMs() < validUntilMs,
      () => held.undoLateRequests(),
    );
    const keep = (granted: Parameters<typeof hold>[2]): Hold => {
      protocol.granted();
      return hold(this.#session, this.#place.mutex, granted, resolved);
    };
    // A wait of 0 ms is one as well: it gives the mutex up.
    const waiting = waitForGrant(this.#session, protocol, { ...resolved, waitMs: Math.max(1, resolved.waitMs) }, keep);
    // The request is on its way, and with it the old lease.
    held.end();
    lease.end("released");
    const end = await waiting;
    if (end instanceof Hold) return this.#make(end);
    throw new WaitTimeoutError(this.lockName, {
      waitMs: resolved.waitMs,
      awaited: `a signal of the condition ${quote(this.name)}, and the mutex after it,`,
      now: "the mutex is not held",
    });
  }

  /**
   * Lets the waiter that came first go on, when it gets the mutex. One round trip.
   *
   * @param lease  of the mutex; it stays held
   * @returns 1, or 0 if nobody waited
   * @throws LeaseLostError  it is over; nobody was signalled
   * @throws StoreError      outcome unknown; a waiter may have been signalled
   * @throws TypeError       not a lease of this mutex
   */
  signal(lease: Lease): Promise<number> {
    return this.#signal(lease, false);
  }

  /**
   * Lets everybody go on who waits now, each when it gets the mutex. One round trip for each 1000 of them.
   *
   * @param lease  of the mutex; it stays held
   * @returns how many waited
   * @throws as `signal`
   */
  signalAll(lease: Lease): Promise<number> {
    return this.#signal(lease, true);
  }

  /** Who waits for a signal, the one that came first first. `holders` is always empty. @throws StoreError */
  inspect(): Promise<Inspection> {
    return inspect(this.#session, looking(this.#place));
  }

  async #signal(lease: Lease, isAll: boolean): Promise<number> {
    const held = this.#holdOf(lease);
    lease.assertHeld();
    const signals = signalsOf.get(held.grant.claim) ?? { lastRequest: 0, last: undefined };
    signalsOf.set(held.grant.claim, signals);
    const before = signals.last;
    const done =
      before === undefined
        ? this.#move(lease, held, signals, isAll)
        : before.then(() => this.#move(lease, held, signals, isAll));
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
