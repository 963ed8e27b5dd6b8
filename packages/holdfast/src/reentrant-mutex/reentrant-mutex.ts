import { acquire, run, tryAcquire } from "../core/acquire.js";
import { UnsupportedError } from "../core/errors.js";
import { type AcquireEvent, channels, type GrantEvent, serverOf } from "../core/events.js";
import { show } from "../core/keys.js";
import { Lease } from "../core/lease.js";
import type { LocalQueues } from "../core/local-queue.js";
import { Lock } from "../core/lock.js";
import {
  ACQUIRE_OPTIONS,
  type AcquireOptions,
  NONE,
  type ResolvedOptions,
  type RunOptions,
  resolve,
  type TryAcquireOptions,
} from "../core/options.js";
import type { LockProtocol } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import type { HoldContexts } from "./contexts.js";
import { type Entry, SharedHold } from "./shared-hold.js";

/** Lets code that does not run inside `run` reenter a hold. */
export interface Reentry {
  /**
   * A live lease on the same lock from the same Holdfast instance. The new lease shares its hold. By default, the new
   * lease shares the hold of the enclosing `run`, if there is one.
   */
  readonly within?: ReentrantLease | undefined;
}

/** Options of `acquire` and `run`. */
export type ReentrantOptions = AcquireOptions & Reentry;

/** Options of `tryAcquire`. */
export type ReentrantTryOptions = TryAcquireOptions & Reentry;

const REENTRANT_OPTIONS = /* @__PURE__ */ ACQUIRE_OPTIONS.concat("within");

/** A lease on a reentrant mutex. Leases that share a hold have the same token and owner, and are lost together. */
export class ReentrantLease extends Lease {
  readonly #entry: Entry;

  /** @internal */
  constructor(entry: Entry) {
    super(entry);
    this.#entry = entry;
  }

  /** The number of leases that share this hold now, including this one; 0 once this one is over. */
  get holdCount(): number {
    return this.validForMs() > 0 ? this.#entry.shared.count : 0;
  }

  /** @internal */
  static sharedOf(lease: ReentrantLease): SharedHold {
    return lease.#entry.shared;
  }
}

/**
 * A mutex that its holder may acquire again. On the server, it is the same lock as `mutex(name)`, so the two exclude
 * each other and share one queue.
 *
 * The holder is the work of `run`, together with everything that the work calls, awaits or starts. Inside that work,
 * nested acquires of the same name through the same Holdfast instance succeed immediately, with the same token and
 * without a round trip. The mutex is released when the last of these leases is released. Each `acquire` outside any
 * `run` is a separate owner; to reenter its hold, pass `{ within: lease }`.
 *
 * Concurrent branches inside one `run` share its hold, so they do not exclude each other. If they must, use a plain
 * mutex with another name. If the work returns while a branch still has a lease, `run` resolves, and the mutex stays
 * held until that lease is released. A branch that acquires after all leases were released gets a new hold. Reentering
 * a lost hold throws a LeaseLostError.
 *
 * A longer `leaseMs` in a nested acquire extends the hold for all its leases, which costs a round trip. A nested
 * acquire throws an UnsupportedError if its `renew` or `maxHoldMs` differs from the hold's. `waitMs`, `label` and
 * `fairness` have no effect, because a nested acquire does not wait and shares the owner of the hold.
 *
 * @example
 * const mutex = holdfast.reentrantMutex("report");
 * const addPage = () => mutex.run(() => writePage()); // also works on its own
 * await mutex.run(async () => {
 *   await addPage(); // needs no round trip
 *   await addPage();
 * });
 */
export class ReentrantMutex extends Lock<ReentrantLease> {
  readonly #contexts: HoldContexts;

  /** @internal */
  constructor(
    session: Session,
    protocol: LockProtocol,
    defaults: ResolvedOptions,
    contexts: HoldContexts,
    localQueues: LocalQueues | undefined,
  ) {
    super(
      session,
      protocol,
      defaults,
      (hold) => new ReentrantLease(new SharedHold(contexts, hold).enter()),
      localQueues,
    );
    this.#contexts = contexts;
  }

  /**
   * The number of leases that share the hold of the caller's `run`; 0 outside any `run` of this lock, and once that
   * hold is lost.
   */
  get holdCount(): number {
    const shared = this.#contexts.find(this.protocol.key);
    return shared !== undefined && shared.hold.validForMs() > 0 ? shared.count : 0;
  }

  /**
   * Reenters the hold of the caller, or waits until the lock is free.
   *
   * @throws LeaseLostError    the hold to reenter is over
   * @throws UnsupportedError  `renew` or `maxHoldMs` differs from that of the hold to reenter
   * @throws TypeError         `within` is not a lease on this lock from this Holdfast instance
   * @throws the other errors of `Lock.acquire`
   */
  override async acquire(options: ReentrantOptions = NONE): Promise<ReentrantLease> {
    const { within, others } = split(options);
    const resolved = resolve(others, this.defaults, REENTRANT_OPTIONS);
    const shared = this.#sharedBy(within);
    if (shared !== undefined) return this.#enter(shared, others, resolved);
    return acquire(this.session, this.protocol, resolved, this.make, this.localQueues);
  }

  /**
   * Reenters the hold of the caller, or takes the lock if it is free now.
   *
   * @throws as `acquire`, except AcquireTimeoutError
   */
  override async tryAcquire(options: ReentrantTryOptions = NONE): Promise<ReentrantLease | null> {
    const { within, others } = split(options);
    const resolved = resolve(others, this.defaults, REENTRANT_OPTIONS);
    const shared = this.#sharedBy(within);
    if (shared !== undefined) return this.#enter(shared, others, { ...resolved, waitMs: 0 });
    return tryAcquire(this.session, this.protocol, resolved, this.make);
  }

  /**
   * Runs `work` while holding the lock. Code that `work` calls may acquire it again.
   *
   * @returns what `work` returned
   * @throws as `Lock.run`, and as `acquire`
   */
  override async run<Result>(
    work: (lease: ReentrantLease) => Result | Promise<Result>,
    options: ReentrantOptions & RunOptions = NONE,
  ): Promise<Result> {
    const inside = (lease: ReentrantLease): Result | Promise<Result> =>
      this.#contexts.run(this.protocol.key, ReentrantLease.sharedOf(lease), () => work(lease));
    return run(this.session, typeof work === "function" ? inside : work, options, (given) => this.acquire(given));
  }

  #sharedBy(within: unknown): SharedHold | undefined {
    if (within === undefined) return this.#contexts.find(this.protocol.key);
    const shared = within instanceof ReentrantLease ? ReentrantLease.sharedOf(within) : undefined;
    if (shared === undefined || shared.home !== this.#contexts || shared.hold.lockKey !== this.protocol.key) {
      const expected = `a lease of the reentrant mutex ${show(this.name)} from the same Holdfast`;
      throw new TypeError(`within must be ${expected}; got ${show(within)}`);
    }
    (within as ReentrantLease).assertHeld();
    return shared;
  }

  async #enter(shared: SharedHold, given: AcquireOptions, resolved: ResolvedOptions): Promise<ReentrantLease> {
    resolved.signal?.throwIfAborted();
    shared.assertHeld();
    const { hold } = shared;
    for (const option of ["renew", "maxHoldMs"] as const) {
      if (given[option] === undefined || given[option] === hold.options[option]) continue;
      const message = `A nested acquire of ${show(this.name)} cannot set ${option} to ${given[option]}, because the outer acquire set it to ${hold.options[option]}. Omit the option in nested acquires.`;
      throw new UnsupportedError(this.name, message);
    }
    const lease = new ReentrantLease(shared.enter());
    this.#publish(lease, resolved);
    const { leaseMs } = given;
    if (leaseMs !== undefined && (leaseMs > hold.leaseMs || !hold.options.renew)) {
      try {
        await lease.extend(leaseMs);
      } catch (error) {
        await lease[Symbol.asyncDispose]();
        throw error;
      }
    }
    return lease;
  }

  #publish({ owner, token }: Lease, { waitMs, leaseMs }: ResolvedOptions): void {
    const about = { kind: this.protocol.kind, lockName: this.name, owner, call: {} };
    if (channels.acquire.hasSubscribers) {
      const event: AcquireEvent = { ...about, waitMs, leaseMs, server: serverOf(this.session.store) };
      channels.acquire.publish(event);
    }
    if (channels.grant.hasSubscribers) {
      const event: GrantEvent = { ...about, token, waitedMs: 0 };
      channels.grant.publish(event);
    }
  }
}

function split(options: ReentrantOptions): { within: unknown; others: AcquireOptions } {
  if (options === null || typeof options !== "object" || !("within" in options)) {
    return { within: undefined, others: options };
  }
  const { within, ...others } = options;
  return { within, others };
}
