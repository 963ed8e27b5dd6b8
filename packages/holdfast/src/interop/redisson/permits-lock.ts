/** What both sorts of Redisson's semaphores do alike: permits as an option of every acquire, and requests that count once. */
import type { AcquireOptions, Lease, TryAcquireOptions } from "../../index.js";
import {
  ACQUIRE_OPTIONS,
  checkWhole,
  insist,
  type LockProtocol,
  type MakeLease,
  NONE,
  type ResolvedOptions,
  resolve,
  show,
  unknownOption,
} from "../../internal.js";
import { ForeignLock, type ForeignParts } from "../foreign-lock.js";
import type { CountPlace } from "./permits-place.js";
import { listenOn } from "./waiting.js";

/** Java counts permits in an `int`. */
export const MOST_PERMITS = 2_147_483_647;

/** How to acquire permits without waiting. */
export interface RedissonTryAcquireOptions extends TryAcquireOptions {
  /**
   * How many permits to take, all or none. A whole number from 1 to 2,147,483,647; where permits have ids and leases, which all
   * go in one request, to 1,000.
   * @default 1
   */
  readonly permits?: number | undefined;
}

/** How to acquire permits, and how long to try. */
export interface RedissonAcquireOptions extends AcquireOptions, RedissonTryAcquireOptions {}

/** How an object is waited for. */
export interface RecheckOptions {
  /**
   * Longest sleep of a waiter that nothing wakes. Longer asks the server less; shorter notices sooner that a message was lost,
   * that a service publishes with the other command, or that permits of a process that died can be taken back. Whole
   * milliseconds, 10 to 60,000.
   * @default 2_000
   */
  readonly recheckMs?: number | undefined;
}

const RECHECK_MS = 2_000;
/** A fifth less at most, so that those of several processes do not ask together. */
const JITTER = 0.2;

/** @throws TypeError, RangeError  a wrong option */
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

/** How those who wait for an object sleep and wake. */
export function waitsOf(
  { scope, tell }: CountPlace,
  recheckMs: number,
): Pick<ForeignParts<Lease>, "pauses" | "listen"> {
  return {
    pauses: { delayMs: recheckMs, jitterMs: recheckMs * JITTER },
    listen: (_claim, onNews) => listenOn(scope, tell.channel, onNews),
  };
}

/** What a semaphore is made of. */
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

/** See the file header. */
export class PermitsLock<Held extends Lease> extends ForeignLock<Held> {
  readonly #mostPermits: number;

  /** @internal */
  constructor(parts: ForeignParts<Held>, mostPermits: number) {
    super(parts);
    this.#mostPermits = mostPermits;
  }

  /**
   * Waits until so many permits are free, then holds them. One round trip if that is now.
   *
   * @throws AcquireTimeoutError  after `waitMs`; nothing is held
   * @throws StoreError           the server did not answer, and what may have been taken is given back or comes back after its
   *                              lease; or the name belongs to something else, and nothing was done
   * @throws EvictionError        the server may evict keys, and that was not allowed; nothing is held
   * @throws ClosedError          this Holdfast was closed
   * @throws TypeError, RangeError  a wrong option; nothing was sent
   * @throws the signal's reason, if it aborts the wait; nothing is held
   */
  override acquire(options?: RedissonAcquireOptions): Promise<Held> {
    return super.acquire(options);
  }

  /** Takes permits only if so many are free now. One round trip. @returns null if not @throws as `acquire` */
  override tryAcquire(options?: RedissonTryAcquireOptions): Promise<Held | null> {
    return super.tryAcquire(options);
  }

  /** Runs `work` while holding permits; otherwise as `Lock.run`. @throws as `acquire`, and then `work` was not called */
  override run<Result>(
    work: (lease: Held) => Result | Promise<Result>,
    options?: RedissonAcquireOptions,
  ): Promise<Result> {
    return super.run(work, options);
  }

  /** @internal */
  protected override resolved(options: RedissonAcquireOptions): ResolvedOptions {
    if (options === NONE || options === null || typeof options !== "object") return resolve(options, this.defaults);
    const { permits = 1, ...rest } = options;
    checkWhole("permits", permits, 1, this.#mostPermits);
    return { ...resolve(rest, this.defaults, PERMIT_OPTIONS), amount: permits };
  }

  /** Sends a request until it is answered; it counts once, however often it arrives. @throws StoreError, ClosedError @internal */
  protected once<Answer>(send: (request: string, timeoutMs: number) => Promise<Answer>): Promise<Answer> {
    const request = this.session.newRequestId(this.name);
    return insist(this.session, () => send(request, this.session.commandTimeoutMs));
  }

  /** Asks until all that is over has been taken back, a part at a time. @throws StoreError, ClosedError @internal */
  protected async counted<Counted>(ask: (timeoutMs: number) => Promise<Counted | undefined>): Promise<Counted> {
    this.session.assertOpen(this.name);
    for (;;) {
      const counted = await insist(this.session, () => ask(this.session.commandTimeoutMs));
      if (counted !== undefined) return counted;
    }
  }
}
