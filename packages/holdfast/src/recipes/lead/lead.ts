/**
 * Leading an election for as long as it goes, and standing again: what is written wrong most often around a leader.
 *
 * Invariants: the work of one term has settled before anything else happens, so a process never runs two of them; a lease is
 * released only after its work, and is never given up under it but by expiry; every `started` has its `stopped`.
 */

import { ClosedError, type Leadership, LeaseLostError, type ReleaseOutcome, StoreError } from "../../index.js";
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
} from "../../internal.js";
import { type LeadTrace, leadTracing, traced } from "../tracing.js";
import { WorkLostError } from "../under-lock.js";
import { ResignedError } from "./errors.js";
import { LeadLease } from "./lead-lease.js";
import { type LeadOptions, type ResolvedLead, resolveLead, type TermEnd } from "./options.js";

/** Before it asks a server again that does not answer. Doubled each time. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Stands for election until it is won, and runs `work` as the leader; with `rejoin` again and again.
 *
 * Its end is in this order: the signal of the leadership aborts, the work settles, the lease is released. Ended in that way, by
 * `election.resign()`, by `signal` or because this Holdfast closes, it resolves, whatever the work threw because of that signal, or of
 * the end of its lease.
 * While a server does not answer, or a person has paused the election, it stands on.
 *
 * Two processes can both *believe* that they lead only in a pause beyond validity, or in a failover without grace: give
 * `leadership.term` to whatever must refuse a leader of the past.
 *
 * @param election  of a Holdfast that does not lead or stand in it by another `lead`
 * @param work      gets its leadership, and is to end soon when `leadership.signal` aborts; its return ends the term
 * @returns what `work` has returned last; undefined if it never did
 * @throws what `work`, `started` or `stopped` threw, after the release; with `rejoin` as well
 * @throws LeaseLostError  the lease was lost, and `rejoin` was not asked for; if the work returned all the same, a WorkLostError
 *                         with its `value`
 * @throws EvictionError, StoreError  the server refuses, and will go on refusing
 * @throws ClosedError     this Holdfast was closed before the call
 * @throws TypeError, RangeError  a wrong argument; nothing was sent
 */
export async function lead<Value>(
  election: Election,
  work: (leadership: Leadership) => Value | Promise<Value>,
  options: LeadOptions = {},
): Promise<Value | undefined> {
  if (!(election instanceof Election)) {
    throw new TypeError(`election must be what holdfast.election returned; got ${show(election)}`);
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
    // An election has no other protocol.
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
        `lead stands in the election ${show(this.#protocol.name)} already; a Holdfast is one candidate`,
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

  /** Undefined if it is to stop before it has won. */
  async #campaign(): Promise<LeadLease | undefined> {
    const { session } = this;
    const { signal } = this.#stop;
    // Of a former term: who resigns now has nothing to release.
    this.#released = undefined;
    for (let pauseMs = 0; ; pauseMs = Math.min(Math.max(pauseMs * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS)) {
      try {
        const delayMs = session.runtime.random() * (this.#options.delayMaxMs + pauseMs);
        if (delayMs > 0) await delay(session, this.#protocol.name, delayMs, signal);
        const leadership = await this.#win();
        // The answer to its first step may have taken longer than its lease.
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
    // What is meant for other locks of this Holdfast ends no term.
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

  /** One term, from its first moment to its last. */
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
        // What has ended meanwhile is not begun: its work might wait for an end that it has missed.
        signal.throwIfAborted();
        leadership.assertHeld();
      }
      outcome = { value: await this.#work(leadership) };
    } catch (error) {
      outcome = { error };
    }
    this.#isWorking = false;
    const loss = await this.#release(leadership);
    // Because of the signal it was to end, and so it did.
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

  /** @returns why it was lost, if it was */
  async #release(leadership: LeadLease): Promise<LeaseLostError | undefined> {
    const wasHeld = leadership.validForMs() > 0;
    this.#released = leadership.release();
    try {
      await this.#released;
      if (wasHeld) return undefined;
    } catch (error) {
      if (error instanceof LeaseLostError) return error;
      // Nobody else led meanwhile, and the lease ends by itself.
      if (wasHeld) return undefined;
    }
    try {
      leadership.assertHeld();
    } catch (error) {
      // Its Holdfast has given it back itself, and that is an end like any other.
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

/** Whether the work threw what its signal was aborted for, or what says that it was; or that its lease is over, which may come later. */
function isDueTo(error: unknown, { signal: { aborted, reason }, owner, token }: Leadership): boolean {
  if (error instanceof LeaseLostError && error.owner === owner && error.token === token) return true;
  return aborted && (error === reason || (error instanceof Error && error.cause === reason));
}
