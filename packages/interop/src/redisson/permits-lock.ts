/** The common part of both Redisson semaphores: the option `permits`, and requests that take effect only once. */

import type { AcquireOptions, Lease, RunOptions, TryAcquireOptions } from "holdfast";
import {
  ACQUIRE_OPTIONS,
  checkWhole,
  ForeignLock,
  type ForeignParts,
  insist,
  type LockProtocol,
  type MakeLease,
  NONE,
  type ResolvedOptions,
  resolve,
  show,
  unknownOption,
} from "holdfast/internal";
import type { CountPlace } from "./permits-place.js";
import { listenOn } from "./waiting.js";

/** Maximum number of permits of a semaphore: Java counts them in an `int`. */
export const MOST_PERMITS = 2_147_483_647;

/** Options of `tryAcquire`. */
export interface RedissonTryAcquireOptions extends TryAcquireOptions {
  /**
   * The number of permits to take, all or none. A whole number from 1 to 2,147,483,647. For a permit-expirable
   * semaphore, 1 to 1,000, because one request carries all permit ids.
   * @default 1
   */
  readonly permits?: number | undefined;
}

/** Options of `acquire` and `run`. */
export interface RedissonAcquireOptions extends AcquireOptions, RedissonTryAcquireOptions {}

/** Options of a semaphore or latch. */
export interface RecheckOptions {
  /**
   * Longest time between two requests of a waiter. With a longer time, waiters send fewer requests. With a shorter
   * time, they react sooner if a message was lost, if a service publishes with the other command, or if permits of a
   * crashed process can be taken back. Whole milliseconds, 10 to 60,000.
   * @default 2_000
   */
  readonly recheckMs?: number | undefined;
}

const RECHECK_MS = 2_000;
/** Each pause is up to a fifth shorter, at random, so that processes do not all ask at the same moment. */
const JITTER = 0.2;

/** Returns `recheckMs`, in ms, or its default. @throws TypeError, RangeError  invalid option */
export function checkRecheckMs(options: RecheckOptions): number {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`options must be an object; got ${show(options)}`);
  }
  const [unknown] = Object.keys(options).filter((option) => option !== "recheckMs");
  if (unknown !== undefined) throw unknownOption(unknown, ["recheckMs"]);
  const { recheckMs = RECHECK_MS } = options;
  checkWhole("recheckMs", recheckMs, 10, 60_000);
  return recheckMs;
}

/** Returns how waiters for a semaphore or latch wait: the delays between their requests, and their subscription. */
export function waitsOf(
  { scope, publication }: CountPlace,
  recheckMs: number,
): Pick<ForeignParts<Lease>, "pauses" | "listen"> {
  return {
    pauses: { delayMs: recheckMs, jitterMs: recheckMs * JITTER },
    listen: (_claim, onNews) => listenOn(scope, publication.channel, onNews),
  };
}

/** Returns the parts of a semaphore. */
export function permitsParts<Held extends Lease>(
  place: CountPlace,
  protocol: LockProtocol,
  make: MakeLease<Held>,
  recheckMs: number,
): ForeignParts<Held> {
  const { session, defaults } = place.scope;
  return { session, protocol, defaults, make, ...waitsOf(place, recheckMs), line: `${place.kind}:${place.raw}` };
}

const PERMIT_OPTIONS: readonly string[] = [...ACQUIRE_OPTIONS, "permits"];

/** Base class of both Redisson semaphores. */
export class PermitsLock<Held extends Lease> extends ForeignLock<Held> {
  readonly #mostPermits: number;

  /** @internal */
  constructor(parts: ForeignParts<Held>, mostPermits: number) {
    super(parts);
    this.#mostPermits = mostPermits;
  }

  /**
   * Waits until enough permits are free, then holds them. One round trip if they are free now.
   *
   * @throws AcquireTimeoutError  not granted within `waitMs`; nothing is held
   * @throws StoreError           the server did not reply, and permits that may have been taken are released or expire;
   *                              or the key belongs to an object of a different type, and nothing was done
   * @throws EvictionError        the server may evict keys and this was not allowed; nothing is held
   * @throws ClosedError          this Holdfast was closed
   * @throws TypeError, RangeError  invalid option; nothing was sent
   * @throws the signal's reason, if it aborts the wait; nothing is held
   */
  override acquire(options?: RedissonAcquireOptions): Promise<Held> {
    return super.acquire(options);
  }

  /**
   * Takes permits only if enough are free now. One round trip.
   *
   * @returns null if too few are free
   * @throws as `acquire`, but never AcquireTimeoutError
   */
  override tryAcquire(options?: RedissonTryAcquireOptions): Promise<Held | null> {
    return super.tryAcquire(options);
  }

  /** Runs `work` while holding permits, like `Lock.run`. @throws as `acquire`; then `work` was not called */
  override run<Result>(
    work: (lease: Held) => Result | Promise<Result>,
    options?: RedissonAcquireOptions & RunOptions,
  ): Promise<Result> {
    return super.run(work, options);
  }

  /** Resolves the options, including `permits`. @internal */
  protected override resolved(options: RedissonAcquireOptions): ResolvedOptions {
    if (options === NONE || options === null || typeof options !== "object") return resolve(options, this.defaults);
    const { permits = 1, ...rest } = options;
    checkWhole("permits", permits, 1, this.#mostPermits);
    return { ...resolve(rest, this.defaults, PERMIT_OPTIONS), amount: permits };
  }

  /**
   * Sends a request until the server replies, for about two command timeouts. It takes effect once, however often it
   * arrives.
   *
   * @throws StoreError, ClosedError
   * @internal
   */
  protected once<Answer>(send: (request: string, timeoutMs: number) => Promise<Answer>): Promise<Answer> {
    const request = this.session.newRequestId(this.name);
    return insist(this.session, () => send(request, this.session.commandTimeoutMs));
  }

  /**
   * Repeats the request until the permits of all expired leases have been reclaimed, because one request reclaims only
   * a limited number.
   *
   * @throws StoreError, ClosedError
   * @internal
   */
  protected async counted<Counted>(ask: (timeoutMs: number) => Promise<Counted | undefined>): Promise<Counted> {
    this.session.assertOpen(this.name);
    for (;;) {
      const counted = await insist(this.session, () => ask(this.session.commandTimeoutMs));
      if (counted !== undefined) return counted;
    }
  }
}
