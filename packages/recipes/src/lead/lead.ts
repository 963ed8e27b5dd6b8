/**
 * The loop around a leader election: campaign, lead, release, and campaign again.
 *
 * Invariants:
 * - The work of a term settles before anything else happens, so a process never runs the work of two terms at the same
 *   time.
 * - A lease is released only after its work has settled. While the work runs, the lease ends only if it is lost.
 * - Every call of `started` is followed by a call of `stopped`.
 */

import { ClosedError, type Leadership, LeaseLostError, type ReleaseOutcome, StoreError } from "holdfast";
import {
  acquire,
  delay,
  Election,
  type ElectionProtocol,
  Lock,
  type LockParts,
  type Office,
  officeOf,
  offices,
  onAbort,
  type ResolvedOptions,
  resolve,
  type Session,
  serverOf,
  show,
} from "holdfast/internal";
import { type LeadTrace, leadTracing, traced } from "../tracing.js";
import { WorkLostError } from "../under-lock.js";
import { ResignedError } from "./errors.js";
import { LeadLease } from "./lead-lease.js";
import { type LeadOptions, type ResolvedLead, resolveLead, type TermEnd } from "./options.js";

/** First pause after a failed request. Doubles after each failure, up to LONGEST_PAUSE_MS. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Campaigns until this process wins the election, then runs `work` as the leader. With `rejoin`, it repeats this after
 * each term.
 *
 * A term ends in this order: the signal of the leadership aborts, the work settles, the lease is released. If
 * `election.resign()`, `signal` or the closing of this Holdfast ends the term, `lead` resolves. It then ignores an
 * error that the work threw because of the aborted signal or the end of its lease. While the server does not reply, or
 * while the election is paused, `lead` remains a candidate.
 *
 * Two processes can both *believe* that they lead only after a pause that outlasts the lease, or in a failover with
 * `failoverGrace: "off"`. Pass `leadership.term` to every resource that must reject a former leader.
 *
 * @param election  an election in which this Holdfast is not already a candidate or leader via another `lead`
 * @param work      gets its leadership and must stop soon after `leadership.signal` aborts; the term ends when it
 *                  returns
 * @returns the last value that `work` returned; undefined if it never returned
 * @throws the error that `work`, `started` or `stopped` threw, after the release; even with `rejoin`
 * @throws LeaseLostError  the lease was lost, and `rejoin` is false; a WorkLostError with the `value` if the work
 *                         returned anyway
 * @throws EvictionError, StoreError  the server refuses permanently
 * @throws ClosedError     this Holdfast was closed before the call
 * @throws TypeError, RangeError  an invalid argument; nothing was sent
 *
 * @example
 * await lead(
 *   holdfast.election("feed"),
 *   async (leadership) => {
 *     while (!leadership.signal.aborted) await pullFeed(leadership.term);
 *   },
 *   { rejoin: true },
 * );
 */
export async function lead<Value>(
  election: Election,
  work: (leadership: Leadership) => Value | Promise<Value>,
  options: LeadOptions = {},
): Promise<Value | undefined> {
  if (!(election instanceof Election)) {
    throw new TypeError(`election must be the result of holdfast.election; got ${show(election)}`);
  }
  if (typeof work !== "function") throw new TypeError(`work must be a function; got ${show(work)}`);
  return new Candidate(Lock.partsOf<Leadership>(election), work, resolveLead(options)).run();
}

class Candidate<Value> implements Office {
  readonly session: Session;
  readonly key: string;
  readonly #protocol: ElectionProtocol;
  readonly #defaults: ResolvedOptions;
  readonly #work: (leadership: Leadership) => Value | Promise<Value>;
  readonly #options: ResolvedLead;
  readonly #stop = new AbortController();
  #leadership: LeadLease | undefined;
  #isWorking = false;
  #released: Promise<ReleaseOutcome> | undefined;
  #end = (): void => {};
  readonly #ended = new Promise<void>((resolve) => {
    this.#end = resolve;
  });

  constructor(
    { session, protocol, defaults }: LockParts<Leadership>,
    work: (leadership: Leadership) => Value | Promise<Value>,
    options: ResolvedLead,
  ) {
    this.session = session;
    // The lock of an election always has an ElectionProtocol.
    this.#protocol = protocol as ElectionProtocol;
    this.key = protocol.key;
    this.#defaults = defaults;
    this.#work = work;
    this.#options = options;
  }

  get leadership(): Leadership | undefined {
    return this.#leadership;
  }

  overrunMs(): number {
    return this.#isWorking ? (this.#leadership?.lostForMs() ?? 0) : 0;
  }

  async resign(): Promise<ReleaseOutcome | undefined> {
    this.#stop.abort(new ResignedError(this.#protocol.name));
    await this.#ended;
    return this.#released;
  }

  async run(): Promise<Value | undefined> {
    const { session } = this;
    session.assertOpen(this.#protocol.name);
    if (officeOf(session, this.key) !== undefined) {
      throw new TypeError(
        `This Holdfast is already a candidate or the leader in the election ${show(this.#protocol.name)}; a Holdfast can be only one candidate`,
      );
    }
    const { signal, rejoin } = this.#options;
    if (signal?.aborted) return undefined;
    const stopListening = signal && onAbort(signal, () => this.#stop.abort(signal.reason));
    offices.add(this);
    try {
      for (let value: Value | undefined; ; ) {
        const leadership = await this.#campaign();
        if (leadership === undefined) return value;
        value = (await this.#serve(leadership)) ?? value;
        if (!rejoin || this.#stop.signal.aborted) return value;
      }
    } finally {
      offices.delete(this);
      stopListening?.();
      this.#end();
    }
  }

  /** @returns undefined if `lead` must stop before the election is won */
  async #campaign(): Promise<LeadLease | undefined> {
    const { session } = this;
    const { signal } = this.#stop;
    // Clear the result of the previous term: during a campaign, `resign` has nothing to release.
    this.#released = undefined;
    for (let pauseMs = 0; ; pauseMs = Math.min(Math.max(pauseMs * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS)) {
      try {
        const delayMs = session.runtime.random() * (this.#options.delayMaxMs + pauseMs);
        if (delayMs > 0) await delay(session, this.#protocol.name, delayMs, signal);
        const leadership = await this.#win();
        // The reply to `proclaim` may have taken longer than the lease.
        if (!signal.aborted && leadership.validForMs() > 0) return leadership;
        await leadership.release().catch(() => {});
      } catch (error) {
        const isPassing = error instanceof LeaseLostError || (error instanceof StoreError && error.transient);
        if (!signal.aborted && !(error instanceof ClosedError) && !isPassing) throw error;
        if (error instanceof ClosedError) return undefined;
      }
      if (signal.aborted) return undefined;
    }
  }

  async #win(): Promise<LeadLease> {
    const { leaseMs, label, value } = this.#options;
    const { signal } = this.#stop;
    // The Holdfast's defaults for other locks must not end a term.
    const kept = { renew: true, maxHoldMs: Infinity };
    const how = { leaseMs, label, waitMs: Infinity, throughPause: true, signal, ...kept };
    const leadership = await acquire(
      this.session,
      this.#protocol,
      resolve(how, this.#defaults),
      (hold) => new LeadLease(this.session, this.#protocol, hold, signal),
    );
    try {
      await leadership.proclaim(value);
      return leadership;
    } catch (error) {
      void leadership.release().catch(() => {});
      throw error;
    }
  }

  /** Runs one term from start to end. */
  #serve(leadership: LeadLease): Promise<Value | undefined> {
    const { name: lockName, token: term } = leadership;
    const begin = (): LeadTrace => ({
      kind: "election",
      lockName,
      term,
      server: serverOf(this.session.store),
      outcome: undefined,
    });
    return traced(leadTracing, begin, (trace) => this.#term(leadership, trace));
  }

  async #term(leadership: LeadLease, trace: LeadTrace | undefined): Promise<Value | undefined> {
    const { started, stopped, rejoin } = this.#options;
    const { signal } = leadership;
    this.#leadership = leadership;
    this.#released = undefined;
    this.#isWorking = true;
    let outcome: { readonly value: Value } | { readonly error: unknown };
    try {
      if (started !== undefined) {
        await started(leadership);
        // The term may have ended during `started`. The work must not begin: it could wait for an abort that has
        // already fired.
        signal.throwIfAborted();
        leadership.assertHeld();
      }
      outcome = { value: await this.#work(leadership) };
    } catch (error) {
      outcome = { error };
    }
    this.#isWorking = false;
    const loss = await this.#release(leadership);
    // An error that the aborted signal caused is the expected end of the work, not a failure.
    const isFailed = "error" in outcome && !isDueTo(outcome.error, leadership);
    const ending = loss !== undefined ? "lost" : this.#endOf(signal, isFailed);
    if (trace !== undefined) trace.outcome = ending;
    try {
      await stopped?.(leadership, ending);
    } catch (error) {
      if (!isFailed) throw error;
    }
    if ("error" in outcome) {
      if (isFailed) throw outcome.error;
      if (loss !== undefined && !rejoin) throw loss;
      return undefined;
    }
    if (loss === undefined || rejoin) return outcome.value;
    const { reason, token, owner, forced } = loss;
    throw new WorkLostError(leadership.name, { reason, token, owner, forced, value: outcome.value });
  }

  /** @returns the loss, if the lease was lost */
  async #release(leadership: LeadLease): Promise<LeaseLostError | undefined> {
    const wasHeld = leadership.validForMs() > 0;
    this.#released = leadership.release();
    try {
      await this.#released;
      if (wasHeld) return undefined;
    } catch (error) {
      if (error instanceof LeaseLostError) return error;
      // The lease was held to the end of the work, so no other process led in the meantime. The lease expires on its
      // own.
      if (wasHeld) return undefined;
    }
    try {
      leadership.assertHeld();
    } catch (error) {
      // The Holdfast released the lease while closing. That is a normal end, not a loss.
      if (error instanceof LeaseLostError) return error.reason === "closed" ? undefined : error;
      throw error;
    }
    return undefined;
  }

  #endOf(signal: AbortSignal, isFailed: boolean): TermEnd {
    if (isFailed) return "failed";
    if (!signal.aborted) return "returned";
    if (signal.reason instanceof ResignedError) return "resigned";
    return this.#stop.signal.aborted ? "aborted" : "closing";
  }
}

/**
 * Whether the work failed because its term ended: it threw the reason of its signal, an error with that reason as its
 * cause, or the LeaseLostError of its own lease. The lease may end later than the signal aborts, and then the two
 * errors differ.
 */
function isDueTo(error: unknown, { signal: { aborted, reason }, owner, token }: Leadership): boolean {
  if (error instanceof LeaseLostError && error.owner === owner && error.token === token) return true;
  return aborted && (error === reason || (error instanceof Error && error.cause === reason));
}
