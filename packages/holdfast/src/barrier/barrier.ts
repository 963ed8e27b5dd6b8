import { waitForGrant } from "../core/acquire.js";
import { type BreakReason, BrokenBarrierError, WaitTimeoutError } from "../core/errors.js";
import { describe, describeClaim, type WaitingClaim } from "../core/inspection.js";
import { type AcquireOptions, checkWhole, type ResolvedOptions, resolve } from "../core/options.js";
import { insist } from "../core/release.js";
import type { Session } from "../core/session.js";
import type { BarrierProtocol, Break } from "./protocol.js";

/** The configuration of a barrier, which must be the same in every process. */
export interface BarrierOptions {
  /** The number of parties that must arrive before any of them continues. A whole number from 1 to 10,000. */
  readonly parties: number;
}

/** Options of `arrive`. */
export interface ArriveOptions extends Pick<AcquireOptions, "waitMs" | "signal" | "label"> {
  /**
   * Length of the lease of this arrival, which is renewed while the party waits. A longer lease survives longer pauses
   * of this process. A shorter one breaks the barrier sooner if this process crashes. Whole milliseconds from 100 to
   * 43,200,000 (12 hours).
   * @default 30_000
   */
  readonly leaseMs?: number | undefined;
}

/** The result of `arrive`: the generation that passed, and the caller's place in it. */
export interface Passage {
  /** Rises by 1 with each generation. Starts again at 1 after a day without use of the barrier. */
  readonly generation: number;
  /** The number of parties that arrived earlier: 0 for the first party, `parties - 1` for the last. */
  readonly index: number;
}

/** The state of a barrier, as returned by `inspect`. A snapshot: the state may have changed by the time you read it. */
export interface BarrierInspection {
  /** Kind of the lock. */
  readonly kind: "barrier";
  /** Name of the barrier. */
  readonly name: string;
  /** The number of parties on the server; undefined if the barrier has not been used for a day. */
  readonly parties: number | undefined;
  /** The generation that parties are joining, or the one that broke. */
  readonly generation: number;
  /** The parties that have arrived, in order of arrival. */
  readonly arrived: readonly WaitingClaim[];
  /** Why the generation broke, and which arrival broke it; undefined if it is not broken. */
  readonly broken: { readonly reason: BreakReason; readonly by: WaitingClaim | undefined } | undefined;
}

const ARRIVE_OPTIONS: readonly string[] = ["waitMs", "signal", "label", "leaseMs"];

/** Well below a day, because the server forgets an unused barrier after a day. */
const LEASE_MAX_MS = 43_200_000;

/**
 * A reusable barrier for a fixed number of parties across processes: each party waits until all have arrived.
 *
 * Either all parties of a generation continue, or the generation breaks for all of them. It breaks when one party times
 * out, aborts, closes its Holdfast instance or crashes. A crash is detected when the lease of the arrival ends. The
 * other parties then get a BrokenBarrierError that names the party that broke it. Later arrivals get the same error
 * until the barrier is reset.
 *
 * The method names follow java.util.concurrent.CyclicBarrier. Unlike in Java, a crash breaks the barrier, and `index`
 * counts up. With `waitMs: 0`, a party arrives only if it is the last one; otherwise, the call leaves no trace.
 *
 * @example
 * const barrier = holdfast.barrier("phase", { parties: 3 });
 * await computePhase(1);
 * const { index } = await barrier.arrive({ waitMs: 60_000 });
 * if (index === 0) await report("phase 1 is complete");
 * await computePhase(2);
 */
export class Barrier {
  /** Name of the barrier. */
  readonly name: string;
  /** The number of parties that this object was configured with. */
  readonly parties: number;
  readonly #session: Session;
  readonly #protocol: BarrierProtocol;
  readonly #defaults: ResolvedOptions;

  /** Use the factory of a Holdfast instance instead. @internal */
  constructor(session: Session, protocol: BarrierProtocol, defaults: ResolvedOptions, parties: number) {
    this.name = protocol.name;
    this.parties = parties;
    this.#session = session;
    this.#protocol = protocol;
    this.#defaults = defaults;
  }

  /**
   * Arrives and waits until all parties have arrived. By default, the wait has the same limit as an acquire. Takes one
   * round trip and one message, plus a renewal every third of `leaseMs`.
   *
   * @returns the generation that passed and the index of this party in it
   * @throws BrokenBarrierError  the generation broke; none of its parties continues
   * @throws WaitTimeoutError    after `waitMs`; the generation is broken for all parties. With a `waitMs` of 0, or if
   *         the server was unreachable for the whole wait, this party had not arrived, and the message says so
   * @throws the signal's reason, if the signal aborts the wait; the call rejects once the server has broken the
   *         generation for the others, or after `commandTimeoutMs` without a reply
   * @throws CapacityMismatchError  the server has a different number of parties; this party has not arrived
   * @throws StoreError          no reply; the generation breaks after `leaseMs` at the latest
   * @throws EvictionError       the server may evict keys, and `allowEviction` is not set; this party has not arrived
   * @throws ClosedError         this Holdfast instance was closed; the generation is broken for the others
   * @throws TypeError, RangeError  an invalid option; nothing was sent
   */
  async arrive(options: ArriveOptions = {}): Promise<Passage> {
    const resolved = resolve(options, this.#defaults, ARRIVE_OPTIONS);
    checkWhole("leaseMs", resolved.leaseMs, 100, LEASE_MAX_MS);
    const { waitMs, signal } = resolved;
    const { runtime, clientInbox } = this.#session;
    const startedAtMs = runtime.monotonicMs();
    const isTimeUp = (): boolean => runtime.monotonicMs() - startedAtMs >= waitMs - 1;
    const arrival = this.#protocol.arrival(
      waitMs > 0,
      () => clientInbox.isDeaf,
      () => (signal?.aborted ? "aborted" : isTimeUp() ? "timed-out" : "left"),
    );
    const end = await waitForGrant(this.#session, arrival, resolved);
    const broken = arrival.broken();
    if (broken !== undefined) throw await this.#error(broken);
    if ("token" in end) return { generation: end.token, index: end.slots[0] ?? 0 };
    const passed = arrival.passed();
    if (passed !== undefined) return passed;
    throw new WaitTimeoutError(this.name, {
      waitMs,
      awaited: "the other parties did not arrive",
      now:
        waitMs === 0 || arrival.isAbsent() ? "this party has not arrived" : "this generation is broken for all parties",
    });
  }

  /**
   * Begins a new generation with this object's number of parties. Waiting parties get a BrokenBarrierError.
   *
   * @returns the number of the new generation
   * @throws StoreError   outcome unknown
   * @throws ClosedError  this Holdfast instance was closed
   */
  async reset(): Promise<number> {
    const request = this.#session.newRequestId(this.name);
    return insist(this.#session, () => this.#protocol.reset(request, this.#session.commandTimeoutMs));
  }

  /**
   * Returns the generation, the parties that have arrived and, if the generation is broken, why and by whom. Read-only.
   *
   * @throws StoreError, ClosedError
   */
  async inspect(): Promise<BarrierInspection> {
    this.#session.assertOpen(this.name);
    const state = await this.#protocol.inspect(undefined, this.#session.commandTimeoutMs);
    const { parties, generation, broken } = state;
    const { waiters: arrived } = await describe(this.#session, this.#protocol, state);
    return {
      kind: "barrier",
      name: this.name,
      parties,
      generation,
      arrived,
      broken: broken && { reason: broken.reason, by: await this.#who(broken) },
    };
  }

  async #error(broken: Break): Promise<BrokenBarrierError> {
    const { generation, reason } = broken;
    return new BrokenBarrierError(this.name, { generation, reason, by: await this.#who(broken) });
  }

  async #who({ by }: Break): Promise<WaitingClaim | undefined> {
    return by === "" ? undefined : describeClaim(this.#session, by);
  }
}
