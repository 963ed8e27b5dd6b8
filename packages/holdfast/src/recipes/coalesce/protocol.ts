/** The protocol of a coalesced call: each one script call. */

import {
  recipesCoalesceAcquire,
  recipesCoalesceBegin,
  recipesCoalesceEnd,
  recipesCoalesceExtend,
  recipesCoalesceHeed,
  recipesCoalesceInspect,
  recipesCoalesceLeave,
  recipesCoalesceReclaim,
} from "../../generated/recipes-scripts.js";
import { type Store, StoreError, UnsupportedError } from "../../index.js";
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
} from "../../internal.js";
import { CoalesceLease } from "./lease.js";

/** How many waiters of each sort `inspect` names. */
const NAMED_WAITERS = 50;

/** How a run ended, for those who joined it. */
export interface RunEnd {
  readonly state: "done" | "failed" | "bare";
  readonly text: string;
}

/** A later call has begun. Not an error of anybody; it ends a wait as one does. */
export class Superseded extends Error {
  /** Owner of its claim. */
  readonly by: string;

  constructor(by: string) {
    super("superseded");
    this.by = by;
  }
}

/** The run that this call had joined has ended. Not an error of anybody; it ends a wait as one does. */
export class Joined extends Error {
  readonly end: RunEnd;

  constructor(end: RunEnd) {
    super("joined");
    this.end = end;
  }
}

/** Everything about one call that the server has to know. */
export interface CoalescePlace {
  readonly session: Session;
  readonly prefix: string;
  readonly name: string;
  readonly mode: "newest" | "join";
  readonly cancelRunning: boolean;
  /** How the run of this very call has ended; asked only once it has, and only if somebody wants to know. */
  readonly ended: () => RunEnd;
  /** Whether its run has found nothing at all, so that those who joined it wait for the next: it was asked to end, or never began. */
  readonly foundNothing: () => "superseded" | "unbegun" | undefined;
}

/** See the file header. Made for one call, whose place in the order of arrival it keeps. */
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
  /** Its first request had no answer, so that the next one may arrive long after this call was made. */
  #isLate = false;
  /** Owners of its claims that may have begun. */
  readonly #begunAs = new Set<string>();
  /** Of the run that has begun, what a server that has lost it cannot know. */
  #begun: { readonly owner: string; readonly arrivalUs: number; readonly coversUs: number } | undefined;
  #lease: CoalesceLease | undefined;
  /** Owner of the claim that wants this run to end. */
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

  /** A run that has not begun is not put back: its call waits again, in its place. */
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

  leaseOn(hold: Hold): CoalesceLease {
    this.#lease = new CoalesceLease(hold);
    return this.#lease;
  }

  /** @throws Superseded, Joined  no waiting helps */
  async acquire(claim: Claim, enqueue: boolean, timeoutMs: number): Promise<AcquireReply> {
    const isFirst = this.#arrival === 0;
    const attempt = await this.#ask(claim, enqueue, timeoutMs);
    if (!isFirst || !this.#place.cancelRunning || attempt.outcome === "granted") return attempt;
    return await this.#ask(claim, enqueue, timeoutMs);
  }

  async #ask(claim: Claim, enqueue: boolean, timeoutMs: number): Promise<AcquireReply> {
    const { owner, leaseMs } = claim;
    const { mode, cancelRunning } = this.#place;
    // A request whose copy may come late must not end a run that began after this call: whoever asks for an end says when it came.
    const cancel = cancelRunning && this.#arrival !== 0 ? 1 : 0;
    const flags = { joins: mode === "join" ? 1 : 0, enqueue: enqueue ? 1 : 0, cancel };
    const args = { owner, leaseMs, ...flags, arrival: this.#arrival, ageUs: this.#ageUs(), inbox: this.inbox };
    const reply = await call(this, recipesCoalesceAcquire, this.#keys, args, timeoutMs).catch((error: unknown) => {
      this.#isLate ||= this.#arrival === 0;
      throw error;
    });
    switch (reply.outcome) {
      case "granted":
        // A lease that is lost before the call begins is followed by another, in the same place.
        this.#arrival = reply.arrival;
        return { outcome: "granted", token: reply.token };
      case "superseded": {
        const by = reply.by[0] ?? "";
        if (!this.#isLate || !this.#begunAs.has(by)) throw new Superseded(by);
        // It began, and lost its lease before it knew. Its age is a bound whose slack varies from request to request, so that it
        // may seem older than itself; what counts is the arrival with which it began, which is no later than that of its grant.
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
        // An answer that comes late says the same as one before it.
        this.#arrival = reply.arrival;
        return { outcome: reply.outcome, restMs: reply.restMs, nowUs: reply.nowUs };
    }
  }

  /**
   * The call begins, and those before it are superseded. What is not answered may have been done, and then they have been told: it
   * is asked again for as long as the lease lasts and the caller stays.
   *
   * @param stays  whether the caller would go on waiting
   * @returns false if it is not granted any more
   * @throws StoreError  not known, and the caller has gone
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
    // A message that says so may be lost, and only says that it is worth asking.
    if (reply.outcome === "extended" && this.#lease !== undefined) void this.#look(owner, timeoutMs);
    return reply.outcome;
  }

  async release({ claim: { owner }, token }: Grant, timeoutMs: number): Promise<"released" | NotHeld> {
    const { inbox } = this;
    const send = ({ state, text }: { state: string; text: string }) =>
      call(this, recipesCoalesceEnd, this.#keys, { owner, token, inbox, state, value: text }, timeoutMs);
    const { outcome } = await send({ state: this.#place.foundNothing() ?? "", text: "" });
    if (outcome !== "wanted") return outcome;
    const told = await send(this.#place.ended());
    return told.outcome === "wanted" ? "released" : told.outcome;
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
        "A run cannot be force-released; it ends by itself after a crash of its process.",
      ),
    );
  }

  async #look(owner: string, timeoutMs: number): Promise<void> {
    try {
      const reply = await call(this, recipesCoalesceHeed, this.#keys, { owner }, timeoutMs);
      if (reply.outcome === "cancelled") this.#heeds(reply.by[0]);
    } catch {
      // The next renewal looks again.
    }
  }

  /**
   * How long ago it should have arrived at the latest, in µs: a request that is answered arrives within a command time-out, so
   * that whoever arrived later than that was called later. Less an allowance for clocks (A1, A2).
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
