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
  resolve,
  type TryAcquireOptions,
} from "../core/options.js";
import type { LockProtocol } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import type { HoldContexts } from "./contexts.js";
import { type Entry, SharedHold } from "./shared-hold.js";

/** The way in for code that does not run inside `run`. */
export interface Reentry {
  /**
   * A lease of the same lock from the same Holdfast that is still held: the new lease stands on the same hold.
   * Without it, the hold of the `run` around the caller counts, if there is one.
   */
  readonly within?: ReentrantLease | undefined;
}

/** How to acquire a reentrant mutex. */
export type ReentrantOptions = AcquireOptions & Reentry;

/** How to acquire a reentrant mutex without waiting. */
export type ReentrantTryOptions = TryAcquireOptions & Reentry;

const REENTRANT_OPTIONS: readonly string[] = [...ACQUIRE_OPTIONS, "within"];

/** A lease of a reentrant mutex. It may share its hold with others: same token, same owner, one end. */
export class ReentrantLease extends Lease {
  readonly #entry: Entry;

  /** Leases come from `acquire`, `tryAcquire`, `run` and `adopt`. @internal */
  constructor(entry: Entry) {
    super(entry);
    this.#entry = entry;
  }

  /** How many leases stand on the same hold now, this one included; 0 when this one is over. */
  get holdCount(): number {
    return this.validForMs() > 0 ? this.#entry.shared.count : 0;
  }

  /** @internal */
  static sharedOf(lease: ReentrantLease): SharedHold {
    return lease.#entry.shared;
  }
}

/**
 * A mutex that its holder may acquire again. On the server it is the mutex of the same name: it excludes
 * `mutex(name)` too, in the same queue.
 *
 * What is the holder? The work of `run`, with everything that it calls, awaits or starts: inside it, acquiring
 * the same name through the same Holdfast is answered at once, without a round trip, with the same token; the
 * mutex is given back when the last of these leases is released. An `acquire` outside of every `run` is an owner
 * of its own, each time: pass `{ within: lease }` to enter its hold again.
 *
 * Branches that one `run` starts side by side all stand in its hold, so it does not keep them apart from each
 * other; a plain mutex under another name does. If the work returns while a branch still has a lease, `run`
 * resolves and the mutex stays held until that lease is released. A branch that acquires after all have been
 * released gets a hold of its own. Once the hold is lost, entering it again is a LeaseLostError.
 *
 * An option that a re-entry gives is never dropped silently: a longer `leaseMs` extends the hold for all, which
 * is a round trip; a `renew` or `maxHoldMs` that differs from the hold's is an UnsupportedError. `waitMs`,
 * `label` and `fairness` concern the wait for the server, and there is none.
 */
export class ReentrantMutex extends Lock<ReentrantLease> {
  readonly #contexts: HoldContexts;

  /** Locks come from the factories of a Holdfast. @internal */
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
   * How many leases stand on the hold that the caller's `run` established; 0 outside of every `run` of this lock,
   * and when that hold was lost.
   */
  get holdCount(): number {
    const shared = this.#contexts.find(this.protocol.key);
    return shared !== undefined && shared.hold.validForMs() > 0 ? shared.count : 0;
  }

  /**
   * Enters the hold that the caller stands in, or waits until the lock is free.
   *
   * @throws LeaseLostError    the hold that would be entered is over
   * @throws UnsupportedError  a re-entry asks for a `renew` or `maxHoldMs` that its hold does not have
   * @throws TypeError         `within` is not a lease of this lock and this Holdfast
   * @throws as every `acquire`
   */
  override async acquire(options: ReentrantOptions = NONE): Promise<ReentrantLease> {
    const { within, others } = split(options);
    const resolved = resolve(others, this.defaults, REENTRANT_OPTIONS);
    const shared = this.#sharedBy(within);
    if (shared !== undefined) return this.#enter(shared, others, resolved);
    return acquire(this.session, this.protocol, resolved, this.make, this.localQueues);
  }

  /** Enters the hold that the caller stands in, or takes the lock if it is free now. @throws as `acquire` */
  override async tryAcquire(options: ReentrantTryOptions = NONE): Promise<ReentrantLease | null> {
    const { within, others } = split(options);
    const resolved = resolve(others, this.defaults, REENTRANT_OPTIONS);
    const shared = this.#sharedBy(within);
    if (shared !== undefined) return this.#enter(shared, others, { ...resolved, waitMs: 0 });
    return tryAcquire(this.session, this.protocol, resolved, this.make);
  }

  /**
   * Runs `work` while holding the lock; whatever `work` calls may acquire it again.
   *
   * @returns what `work` returned
   * @throws as every `run`, and as `acquire`
   */
  override async run<Result>(
    work: (lease: ReentrantLease) => Result | Promise<Result>,
    options: ReentrantOptions = NONE,
  ): Promise<Result> {
    const inside = (lease: ReentrantLease): Result | Promise<Result> =>
      this.#contexts.run(this.protocol.key, ReentrantLease.sharedOf(lease), () => work(lease));
    return run(() => this.acquire(options), typeof work === "function" ? inside : work);
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
      const message = `${option} of ${show(this.name)} is ${hold.options[option]} since it was acquired, and ${given[option]} cannot be had by acquiring it again.`;
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
