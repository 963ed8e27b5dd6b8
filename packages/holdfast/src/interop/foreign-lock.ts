import type { AcquireOptions, TryAcquireOptions } from "../index.js";
import {
  cleanUp,
  Hold,
  hold,
  Lease,
  Lock,
  type LockProtocol,
  type MakeLease,
  NONE,
  type ResolvedOptions,
  resolve,
  type Session,
  type TimedOut,
  timeoutError,
} from "../internal.js";
import { type ForeignWait, ForeignWaiter, type Pauses } from "./foreign-waiter.js";
import { lineOf, lineOfOne } from "./line.js";

/** What a lock in the format of another system is made of. */
export interface ForeignParts<Held extends Lease> {
  readonly session: Session;
  readonly protocol: LockProtocol;
  readonly defaults: ResolvedOptions;
  readonly make: MakeLease<Held>;
  readonly pauses: Pauses;
  /** How to hear of changes, if the protocol tells of them. */
  readonly listen?: ForeignWait["listen"] | undefined;
  /** How often the server is asked by one acquire; Infinity, unless it is said, to go by time alone. */
  readonly attempts?: number | undefined;
  /** What the format calls a claim with that number; the owner id of this library, unless it is said. */
  readonly ownerOf?: ForeignWait["ownerOf"] | undefined;
  /**
   * Callers of one process that name the same are served in turn, and one of them asks for all. Undefined where the server
   * keeps an order of its own, which has to see each of them.
   */
  readonly line: string | undefined;
}

/** A lock that clients of another system share: its waiting is not that of the server's queue, all else is core's. */
export class ForeignLock<Held extends Lease = Lease> extends Lock<Held> {
  readonly #parts: ForeignParts<Held>;

  /** Locks come from the factories of their format. @internal */
  constructor(parts: ForeignParts<Held>) {
    super(parts.session, parts.protocol, parts.defaults, parts.make);
    this.#parts = parts;
  }

  /**
   * Waits until the lock is free, then holds it.
   *
   * One round trip if it is free. Otherwise it asks again when the present lease must be over, and before that in pauses; and
   * whenever the protocol tells that it was released, if it does.
   *
   * @returns a lease; its token orders this grant among those of Holdfast alone, unless the format has one of its own
   * @throws AcquireTimeoutError  after `waitMs`; nothing is held; says who has it, as far as the format tells
   * @throws StoreError           the server did not answer; what may have been granted is given back or expires
   * @throws EvictionError        the server may evict locks, and that was not allowed; nothing is held
   * @throws ClosedError          this Holdfast was closed
   * @throws TypeError, RangeError  a wrong option; nothing was sent
   * @throws the signal's reason, if it aborts the wait; nothing is held
   */
  override async acquire(options: AcquireOptions = NONE): Promise<Held> {
    const resolved = this.resolved(options);
    const { runtime } = this.session;
    const startedAtMs = runtime.monotonicMs();
    const end = await this.#wait(resolved);
    if (end instanceof Hold) return this.#made(end);
    // It may have asked as often as it was to, and then it did not wait as long as it might have.
    const waitMs = Math.min(resolved.waitMs, Math.max(1, Math.ceil(runtime.monotonicMs() - startedAtMs)));
    throw await timeoutError(this.session, this.protocol, { ...resolved, waitMs }, end, startedAtMs);
  }

  /**
   * Takes the lock only if it is free now. One round trip.
   *
   * @returns null if someone else holds it
   * @throws StoreError   the server did not answer; what may have been granted is given back or expires
   * @throws EvictionError  the server may evict locks, and that was not allowed; nothing is held
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  a wrong option; nothing was sent
   */
  override async tryAcquire(options: TryAcquireOptions = NONE): Promise<Held | null> {
    const end = await this.#wait({ ...this.resolved(options), waitMs: 0 });
    return end instanceof Hold ? this.#made(end) : null;
  }

  /** What cannot be told to its caller is given back: nobody else would. */
  #made(hold: Hold): Held {
    try {
      return this.make(hold);
    } catch (error) {
      void new Lease(hold).release().catch(() => {});
      throw error;
    }
  }

  /** What the options of an acquire come to; a format that has more of them takes its own out. @internal */
  protected resolved(options: AcquireOptions): ResolvedOptions {
    return resolve(options, this.defaults);
  }

  /** A hold has begun. For formats in which something is to be looked after then. @internal */
  protected begun(_hold: Hold): void {}

  #wait(options: ResolvedOptions): Promise<Hold | TimedOut> {
    const { session, protocol, pauses, listen, attempts, ownerOf, line } = this.#parts;
    return new Promise((resolveWait, reject) => {
      options.signal?.throwIfAborted();
      new ForeignWaiter({
        session,
        protocol,
        options,
        pauses,
        listen,
        attempts,
        ownerOf,
        // Who does not wait has nobody to stand behind.
        line: line === undefined || options.waitMs === 0 ? lineOfOne(session) : lineOf(session, line),
        ends: {
          granted: (granted) => {
            try {
              const held = hold(session, protocol, granted, options);
              this.begun(held);
              resolveWait(held);
            } catch (error) {
              void cleanUp(session, protocol, granted.claim, granted.mayStillRun(), session.commandTimeoutMs);
              reject(error);
            }
          },
          timedOut: resolveWait,
          failed: reject,
        },
      });
    });
  }
}
