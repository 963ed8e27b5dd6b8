import { waitForGrant } from "../core/acquire.js";
import { type BreakReason, BrokenBarrierError, WaitTimeoutError } from "../core/errors.js";
import { describe, describeClaim, type WaitingClaim } from "../core/inspection.js";
import { type AcquireOptions, checkWhole, type ResolvedOptions, resolve } from "../core/options.js";
import { insist } from "../core/release.js";
import type { Session } from "../core/session.js";
import type { BarrierProtocol, Break } from "./protocol.js";

/** What a barrier must be told when it is made. */
export interface BarrierOptions {
  /** How many must arrive before all go on: whole number, 1 to 10,000, the same in all processes. */
  readonly parties: number;
}

/** How to arrive. */
export interface ArriveOptions extends Pick<AcquireOptions, "waitMs" | "signal" | "label"> {
  /**
   * Length of the lease of this arrival, which is renewed while it waits. Longer rides out longer pauses; shorter
   * breaks the barrier sooner when this process dies. Whole milliseconds, 100 to 43,200,000 (12 hours).
   * @default 30_000
   */
  readonly leaseMs?: number | undefined;
}

/** A generation that passed. */
export interface Passage {
  /** Rises by 1 with each generation. It begins anew at 1 when the barrier was not used for a day. */
  readonly generation: number;
  /** How many arrived before: 0 for the first party, `parties - 1` for the last. */
  readonly index: number;
}

/** What `inspect` tells about a barrier. A snapshot: it may have changed when you read it. */
export interface BarrierInspection {
  readonly kind: "barrier";
  readonly name: string;
  /** How many parties the server counts on; undefined if it was not used of late. */
  readonly parties: number | undefined;
  /** The generation that gathers, or that broke. */
  readonly generation: number;
  /** Who has arrived, in order. */
  readonly arrived: readonly WaitingClaim[];
  /** Why the generation broke, and whose arrival broke it; undefined if it is whole. */
  readonly broken: { readonly reason: BreakReason; readonly by: WaitingClaim | undefined } | undefined;
}

const ARRIVE_OPTIONS: readonly string[] = ["waitMs", "signal", "label", "leaseMs"];

/** A barrier forgets itself after a day, so no lease may come near that. */
const LEASE_MAX_MS = 43_200_000;

/**
 * Lets a fixed number of parties go on together, again and again, in all processes: each waits until all are there.
 *
 * Either all parties of a generation go on, or it breaks for all of them, visibly: when one times out, aborts, closes
 * its Holdfast, or dies (its arrival is a lease), the others get a BrokenBarrierError that names it, and so does
 * whoever arrives later, until somebody resets the barrier. So nobody waits for a party that is not coming.
 *
 * The verbs follow java.util.concurrent.CyclicBarrier. Different is that a death breaks it, that `index` counts up,
 * and that `waitMs: 0` arrives only if that lets all go on, and otherwise leaves no trace.
 */
export class Barrier {
  /** Name of the barrier. */
  readonly name: string;
  /** How many parties this object counts on. */
  readonly parties: number;
  readonly #session: Session;
  readonly #protocol: BarrierProtocol;
  readonly #defaults: ResolvedOptions;

  /** Barriers come from the factory of a Holdfast. @internal */
  constructor(session: Session, protocol: BarrierProtocol, defaults: ResolvedOptions, parties: number) {
    this.name = protocol.name;
    this.parties = parties;
    this.#session = session;
    this.#protocol = protocol;
    this.#defaults = defaults;
  }

  /**
   * Arrives, and waits until all parties have, by default as long as an acquire waits. One round trip and a message, and a
   * renewal every third of `leaseMs`.
   *
   * @returns which generation passed, and as which of its parties
   * @throws BrokenBarrierError  a party of this generation is not coming; nobody went on
   * @throws WaitTimeoutError    after `waitMs`; the generation is broken for all, unless this one had not arrived, which its
   *         message says: with a `waitMs` of 0, or if the server was out of reach for so long
   * @throws the signal's reason, if it aborts the wait, once the server has broken the generation for the others or has not
   *         answered within `commandTimeoutMs`
   * @throws CapacityMismatchError  the server counts on another number of parties; this one has not arrived
   * @throws StoreError          the server did not answer; the generation breaks, at the latest after `leaseMs`
   * @throws EvictionError       the server may evict keys, and that was not allowed; this one has not arrived
   * @throws ClosedError         this Holdfast was closed; the generation is broken for the others
   * @throws TypeError, RangeError  a wrong option; nothing was sent
   */
  async arrive(options: ArriveOptions = {}): Promise<Passage> {
    const resolved = resolve(options, this.#defaults, ARRIVE_OPTIONS);
    checkWhole("leaseMs", resolved.leaseMs, 100, LEASE_MAX_MS);
    const { waitMs, signal } = resolved;
    const { runtime, mailbox } = this.#session;
    const startedAtMs = runtime.monotonicMs();
    const isTimeUp = (): boolean => runtime.monotonicMs() - startedAtMs >= waitMs - 1;
    const arrival = this.#protocol.arrival(
      waitMs > 0,
      () => mailbox.isDeaf,
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
      awaited: "the other parties",
      now: waitMs === 0 || arrival.isAbsent() ? "this one has not arrived" : "this generation is broken for all",
    });
  }

  /**
   * Begins a new generation, for as many parties as this object counts on. Whoever waits gets a BrokenBarrierError.
   *
   * @returns the number of the new generation
   * @throws StoreError   outcome unknown
   * @throws ClosedError  this Holdfast was closed
   */
  async reset(): Promise<number> {
    const request = this.#session.newRequestId(this.name);
    return insist(this.#session, () => this.#protocol.reset(request, this.#session.commandTimeoutMs));
  }

  /** Which generation it is, who has arrived, and who broke it. Changes nothing. @throws StoreError, ClosedError */
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
