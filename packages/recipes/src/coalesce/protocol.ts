/** The protocol of a coalesced call. */

import { type Store, StoreError, UnsupportedError } from "holdfast";
import {
  type AcquireReply,
  type Claim,
  call,
  DRIFT_RATE,
  type Grant,
  type Hold,
  insist,
  type LockProtocol,
  lockKeys,
  type NotHeld,
  type Session,
  type State,
} from "holdfast/internal";
import {
  recipesCoalesceAcquire,
  recipesCoalesceBegin,
  recipesCoalesceEnd,
  recipesCoalesceExtend,
  recipesCoalesceHeed,
  recipesCoalesceInspect,
  recipesCoalesceLeave,
  recipesCoalesceReclaim,
} from "../generated/coalesce.js";
import { CoalesceLease } from "./lease.js";

/** Maximum number of waiters of each mode that `inspect` lists. */
const NAMED_WAITERS = 50;

/** How a run ended, for calls that joined it. `bare` means done, but without a value that can be passed on. */
export interface RunEnd {
  readonly state: "done" | "failed" | "bare";
  /** The encoded value or error; empty for `bare`. */
  readonly text: string;
}

/** A later call has begun. Thrown only to end the wait; callers never see it. */
export class Superseded extends Error {
  /** Owner id of the later call's claim. */
  readonly by: string;

  constructor(by: string) {
    super("superseded");
    this.by = by;
  }
}

/** The run that this call joined has ended. Thrown only to end the wait; callers never see it. */
export class Joined extends Error {
  /** How the run ended. */
  readonly end: RunEnd;

  constructor(end: RunEnd) {
    super("joined");
    this.end = end;
  }
}

/** Identity and settings of one call. */
export interface CoalescePlace {
  readonly session: Session;
  readonly prefix: string;
  readonly name: string;
  readonly mode: "newest" | "join";
  /** Whether to ask the current run to end. */
  readonly cancelRunning: boolean;
  /** Returns how the run of this call ended. Called only after the run, and only if another call may have joined it. */
  readonly ended: () => RunEnd;
  /**
   * Returns why the run of this call has no result; undefined if it has one. Without a result, calls that joined it
   * wait for the next run.
   */
  readonly foundNothing: () => "superseded" | "unbegun" | undefined;
}

/** The protocol of one coalesced call. It remembers the place of the call in the order of arrival. */
export class CoalesceProtocol implements LockProtocol {
  readonly kind = "coalesce";
  readonly name: string;
  readonly key: string;
  readonly inbox: string;
  readonly store: Store;
  readonly exported: undefined;
  readonly #place: CoalescePlace;
  readonly #keys: Readonly<Record<"lock" | "fence" | "waiting" | "joining" | "run", string>>;
  readonly #calledAtMs: number;
  #arrival = 0;
  /** Whether the first request got no reply. A later request may then arrive long after the call was made. */
  #isLate = false;
  /** Owner ids of this call's claims that may have begun. */
  readonly #begunAs = new Set<string>();
  /** Facts about the run that has begun, to restore it on a server that lost it in a failover. */
  #begun: { readonly owner: string; readonly arrivalUs: number; readonly coversUs: number } | undefined;
  #lease: CoalesceLease | undefined;
  /** Owner id of the claim that wants this run to end, if any. */
  supersededBy: string | undefined;

  constructor(place: CoalescePlace) {
    const { session, prefix, name } = place;
    const { tag, lock, base } = lockKeys(prefix, "coalesce", name);
    this.#place = place;
    this.#calledAtMs = session.runtime.monotonicMs();
    this.name = name;
    this.key = lock;
    this.store = session.store;
    this.inbox = session.inboxOf(tag);
    this.#keys = {
      lock,
      fence: `${base}:fence`,
      waiting: `${base}:waiting`,
      joining: `${base}:joining`,
      run: `${base}:run`,
    };
  }

  get confirm(): LockProtocol["confirm"] {
    if (this.store.confirmsGrants !== true) return undefined;
    return (granted, timeoutMs) => this.extend(granted, granted.claim.leaseMs, timeoutMs);
  }

  /**
   * Restores a run that was lost in a failover. A call that has not begun is not restored; it waits again in the same
   * place.
   */
  get reclaim(): LockProtocol["reclaim"] {
    const marker = this.store.lineageKey?.(this.key);
    if (marker === undefined) return undefined;
    return async ({ claim: { owner }, token }, leaseMs, timeoutMs) => {
      const begun = this.#begun;
      if (begun?.owner !== owner) return "refused";
      const { arrivalUs, coversUs } = begun;
      const args = { owner, token, leaseMs, arrivalUs, coversUs };
      return (await call(this, recipesCoalesceReclaim, { ...this.#keys, marker }, args, timeoutMs)).outcome;
    };
  }

  /** Creates the lease of this call. The protocol aborts its signal if a later call wants the run to end. */
  leaseOn(hold: Hold): CoalesceLease {
    this.#lease = new CoalesceLease(hold);
    return this.#lease;
  }

  /**
   * Requests a run. With `cancelRunning`, then asks the current run to end, in a second request that contains the
   * arrival from the first reply.
   *
   * @throws Superseded, Joined  the call need not wait any longer
   */
  async acquire(claim: Claim, enqueue: boolean, timeoutMs: number): Promise<AcquireReply> {
    const isFirst = this.#arrival === 0;
    const attempt = await this.#ask(claim, enqueue, timeoutMs);
    if (!isFirst || !this.#place.cancelRunning || attempt.outcome === "granted") return attempt;
    return await this.#ask(claim, enqueue, timeoutMs);
  }

  async #ask(claim: Claim, enqueue: boolean, timeoutMs: number): Promise<AcquireReply> {
    const { owner, leaseMs } = claim;
    const { mode, cancelRunning } = this.#place;
    // Asks the current run to end only once the arrival of this call is known. Otherwise a late copy of the request
    // could end a run that began after this call.
    const cancel = cancelRunning && this.#arrival !== 0 ? 1 : 0;
    const flags = { joins: mode === "join" ? 1 : 0, enqueue: enqueue ? 1 : 0, cancel };
    const args = { owner, leaseMs, ...flags, arrival: this.#arrival, ageUs: this.#ageUs(), inbox: this.inbox };
    const reply = await call(this, recipesCoalesceAcquire, this.#keys, args, timeoutMs).catch((error: unknown) => {
      this.#isLate ||= this.#arrival === 0;
      throw error;
    });
    switch (reply.outcome) {
      case "granted":
        // If the lease is lost before the call begins, the call waits again with this arrival.
        this.#arrival = reply.arrival;
        return { outcome: "granted", token: reply.token };
      case "superseded": {
        const by = reply.by[0] ?? "";
        if (!this.#isLate || !this.#begunAs.has(by)) throw new Superseded(by);
        // This call itself began, but lost its lease before it learned that it had begun. Its age is only a lower bound
        // and varies between requests, so this request may seem to arrive before the call began. Use the arrival with
        // which the call began, which is no later than the arrival of its grant.
        this.#isLate = false;
        this.#arrival = Math.min(this.#arrival, reply.begunUs);
        return await this.#ask(claim, enqueue, timeoutMs);
      }
      case "joined": {
        const [state, text = ""] = reply.words;
        throw new Joined({ state: state as RunEnd["state"], text });
      }
      case "waiting":
      case "refused":
        // A late reply contains the same arrival as the replies before it.
        this.#arrival = reply.arrival;
        return { outcome: reply.outcome, restMs: reply.restMs, nowUs: reply.nowUs };
    }
  }

  /**
   * Begins the call and supersedes earlier calls. A request without a reply may have run, and earlier calls may already
   * be superseded. So the request is retried while the lease lasts and the caller is still waiting.
   *
   * @param stays  returns whether the caller is still waiting
   * @returns false if the call is no longer granted
   * @throws StoreError  the call may or may not have begun, and the caller is no longer waiting or retrying does not
   *                     help
   */
  async begin(lease: CoalesceLease, stays: () => boolean): Promise<boolean> {
    const { session } = this.#place;
    const { inbox } = this;
    const { owner, token } = lease;
    this.#begunAs.add(owner);
    for (;;) {
      try {
        const reply = await insist(session, () => {
          const ageUs = this.#place.mode === "join" ? 0 : this.#ageUs();
          return call(this, recipesCoalesceBegin, this.#keys, { owner, token, ageUs, inbox }, session.commandTimeoutMs);
        });
        if (reply.outcome === "lost") return false;
        this.#begun = { owner, arrivalUs: reply.arrivalUs, coversUs: reply.coversUs };
        this.#heeds(reply.by[0]);
        return true;
      } catch (error) {
        if (!(error instanceof StoreError) || !error.transient || !stays()) throw error;
        if (lease.validForMs() <= 0) return false;
      }
    }
  }

  async extend({ claim: { owner }, token }: Grant, leaseMs: number, timeoutMs: number): Promise<"extended" | NotHeld> {
    const reply = await call(this, recipesCoalesceExtend, this.#keys, { owner, token, leaseMs }, timeoutMs);
    // Each renewal checks whether a later call wants this run to end. A message about that only triggers a renewal, and
    // it may be lost.
    if (reply.outcome === "extended" && this.#lease !== undefined) void this.#checkCancel(owner, timeoutMs);
    return reply.outcome;
  }

  async release({ claim: { owner }, token }: Grant, timeoutMs: number): Promise<"released" | NotHeld> {
    const { inbox } = this;
    const send = ({ state, text }: { state: string; text: string }) =>
      call(this, recipesCoalesceEnd, this.#keys, { owner, token, inbox, state, value: text }, timeoutMs);
    const { outcome } = await send({ state: this.#place.foundNothing() ?? "", text: "" });
    if (outcome !== "wanted") return outcome;
    const reply = await send(this.#place.ended());
    return reply.outcome === "wanted" ? "released" : reply.outcome;
  }

  async leave({ owner }: Claim, timeoutMs: number): Promise<void> {
    await call(this, recipesCoalesceLeave, this.#keys, { owner, inbox: this.inbox }, timeoutMs);
  }

  async inspect(_owner: string | undefined, timeoutMs: number): Promise<State> {
    const reply = await call(this, recipesCoalesceInspect, this.#keys, { most: NAMED_WAITERS }, timeoutMs);
    const token = reply.token === 0 ? undefined : reply.token;
    const facts = { token, waiterCount: reply.waiters, ahead: undefined };
    if (reply.outcome === "free") return { ...facts, holders: [], waiters: reply.owners };
    const [owner = "", ...waiters] = reply.owners;
    return { ...facts, holders: [{ owner, token, leaseLeftMs: reply.restMs }], waiters };
  }

  adopt(): Promise<never> {
    return Promise.reject(new UnsupportedError(this.name, "A run cannot move to another process."));
  }

  forceRelease(): Promise<never> {
    return Promise.reject(
      new UnsupportedError(
        this.name,
        "A run cannot be force-released. If its process crashes, it ends when its lease expires.",
      ),
    );
  }

  async #checkCancel(owner: string, timeoutMs: number): Promise<void> {
    try {
      const reply = await call(this, recipesCoalesceHeed, this.#keys, { owner }, timeoutMs);
      if (reply.outcome === "cancelled") this.#heeds(reply.by[0]);
    } catch {
      // The next renewal checks again.
    }
  }

  /**
   * Minimum time since the call would have arrived if no request had been lost, in microseconds; 0 if its first request
   * got a reply. A request that gets a reply arrives within one command timeout, so calls that arrive after that were
   * made later. The result allows for clock drift (assumptions A1 and A2 in docs/safety.md).
   */
  #ageUs(): number {
    if (!this.#isLate) return 0;
    const { runtime, commandTimeoutMs } = this.#place.session;
    const passedMs = runtime.monotonicMs() - this.#calledAtMs;
    return Math.max(0, Math.floor((passedMs - (passedMs * DRIFT_RATE + 2) - commandTimeoutMs) * 1_000));
  }

  #heeds(by: string | undefined): void {
    if (by === undefined) return;
    this.supersededBy ??= by;
    this.#lease?.supersede();
  }
}
