/** The protocol of a call that is to be done once: each one script call. */

import {
  recipesOnceBegin,
  recipesOnceExtend,
  recipesOnceInspect,
  recipesOnceLeave,
  recipesOnceReclaim,
  recipesOnceResolve,
  recipesOnceSave,
  recipesOnceSettle,
} from "../../generated/recipes-scripts.js";
import { type Lease, type Store, UnsupportedError } from "../../index.js";
import {
  type AcquireReply,
  askAsHolder,
  type Claim,
  call,
  type Grant,
  insist,
  type LockProtocol,
  lockKeys,
  type NamedStore,
  type NotHeld,
  type Session,
  type State,
} from "../../internal.js";
import { OnceBlockedError, OnceMismatchError } from "./errors.js";

/** What is known of a grant beside its token. */
export interface Granted {
  readonly attempt: number;
  readonly firstMs: number;
  /** As text. */
  readonly saved: string | undefined;
  /** How often this attempt has saved, as far as it has been told. */
  readonly saves: number;
}

/** The call has ended before: what it ended with. Not an error of anybody; it ends a wait as one does. */
export class Over extends Error {
  readonly state: "done" | "failed" | "bare";
  readonly text: string;
  readonly token: number;
  readonly attempt: number;
  readonly firstMs: number;

  constructor(state: string, text: string, facts: { token: number; attempt: number; firstMs: number }) {
    super("over");
    this.state = state as "done" | "failed" | "bare";
    this.text = text;
    this.token = facts.token;
    this.attempt = facts.attempt;
    this.firstMs = facts.firstMs;
  }
}

/** How an attempt ends. */
export interface Ending {
  readonly state: "done" | "failed" | "bare" | "blocked" | "released";
  readonly text: string;
}

/** Everything about one call that the server has to know. */
export interface OncePlace {
  readonly session: Session;
  readonly prefix: string;
  /** With its scope, as `nameOf` has it. */
  readonly name: string;
  readonly fingerprint: string;
  /** Whether another fingerprint is refused after the call was given back too; false if undefined. */
  readonly strictFingerprint?: boolean | undefined;
  readonly keepMs: number;
}

/** See the file header. */
export class OnceProtocol implements LockProtocol {
  readonly kind = "once";
  readonly name: string;
  readonly key: string;
  readonly channel: string;
  readonly exported: undefined;
  readonly #place: OncePlace;
  readonly #caller: NamedStore;
  readonly #grants = new Map<string, Granted>();
  /** Attempts whose work has begun: nobody else may begin before their lease is over, whatever becomes of this Holdfast. */
  readonly #begun = new Set<string>();
  #saves = 0;

  constructor(place: OncePlace) {
    this.#place = place;
    this.name = place.name;
    const { lock, base } = lockKeys(place.prefix, "once", place.name);
    this.key = lock;
    this.channel = `${base}:ended`;
    this.#caller = { store: place.session.store, name: place.name };
  }

  get store(): Store {
    return this.#place.session.store;
  }

  get confirm(): LockProtocol["confirm"] {
    if (this.store.confirmsGrants !== true) return undefined;
    return (granted, timeoutMs) => this.extend(granted, granted.claim.leaseMs, timeoutMs);
  }

  get reclaim(): LockProtocol["reclaim"] {
    const marker = this.store.lineageKey?.(this.key);
    if (marker === undefined) return undefined;
    return async ({ claim: { owner }, token }, leaseMs, timeoutMs) => {
      const granted = this.#grants.get(owner);
      if (granted === undefined) return "refused";
      const { attempt, firstMs, saved, saves } = granted;
      const lease = { owner, token, leaseMs, keepMs: this.#keepMs(leaseMs) };
      const known = { fingerprint: this.#place.fingerprint, attempt, firstMs };
      const args = { ...lease, ...known, isSaved: saved === undefined ? 0 : 1, saved: saved ?? "", saves };
      return (await call(this.#caller, recipesOnceReclaim, { record: this.key, marker }, args, timeoutMs)).outcome;
    };
  }

  /** The work of the attempt that was granted to that owner begins. @returns what came with the grant */
  begins(owner: string): Granted {
    const granted = this.#grants.get(owner);
    if (granted === undefined) throw new Error(`${owner} was never granted ${this.name}`);
    this.#begun.add(owner);
    return granted;
  }

  /** Its work has ended, and the call was given back: whatever a late copy of a request still gets is given back as well. */
  ends(owner: string): void {
    this.#begun.delete(owner);
  }

  /** @throws Over, OnceMismatchError, OnceBlockedError  no waiting helps */
  async acquire(claim: Claim, _enqueue: boolean, timeoutMs: number): Promise<AcquireReply> {
    const { fingerprint, strictFingerprint } = this.#place;
    const { owner, leaseMs } = claim;
    const isStrict = strictFingerprint === true ? 1 : 0;
    const args = { owner, leaseMs, keepMs: this.#keepMs(leaseMs), fingerprint, isStrict };
    const reply = await call(this.#caller, recipesOnceBegin, { record: this.key }, args, timeoutMs);
    switch (reply.outcome) {
      case "granted": {
        const [saved] = reply.saved;
        this.#grants.set(owner, { attempt: reply.attempt, firstMs: reply.firstMs, saved, saves: 0 });
        return { outcome: "granted", token: reply.token };
      }
      case "running":
        return { outcome: "refused", restMs: reply.restMs, nowUs: reply.nowUs };
      case "over": {
        const [state = "", text = ""] = reply.words;
        throw new Over(state, text, reply);
      }
      case "blocked": {
        const [reason = ""] = reply.words;
        throw new OnceBlockedError(this.name, { attempt: reply.attempt, blockedMs: reply.sinceMs, reason });
      }
      case "mismatch": {
        const [state = ""] = reply.words;
        throw new OnceMismatchError(this.name, { state, sinceMs: reply.sinceMs });
      }
    }
  }

  async extend({ claim: { owner } }: Grant, leaseMs: number, timeoutMs: number): Promise<"extended" | NotHeld> {
    const args = { owner, leaseMs, keepMs: this.#keepMs(leaseMs) };
    const reply = await call(this.#caller, recipesOnceExtend, { record: this.key }, args, timeoutMs);
    return reply.outcome;
  }

  /** Given back by whoever has it, so that the next caller runs it. */
  async release({ claim: { owner } }: Grant, timeoutMs: number): Promise<"released" | NotHeld> {
    const reply = await this.#settle(owner, { state: "released", text: "" }, timeoutMs);
    return reply === undefined ? "released" : reply === "" ? "forgotten" : "claimed";
  }

  isKept(owner: string): boolean {
    return this.#begun.has(owner);
  }

  async leave({ owner }: Claim, timeoutMs: number): Promise<void> {
    if (this.isKept(owner)) return;
    await call(this.#caller, recipesOnceLeave, { record: this.key }, { owner, channel: this.channel }, timeoutMs);
  }

  /**
   * Ends the attempt, and insists on an answer.
   *
   * @returns undefined if it is recorded; otherwise the state in which the call is without it, empty if there is none
   * @throws LeaseLostError  the call is not that attempt's any more
   * @throws StoreError      it may be recorded, or not
   */
  settle(lease: Lease, ending: Ending): Promise<string | undefined> {
    const { session } = this.#place;
    const ask = () => insist(session, () => this.#settle(lease.owner, ending, session.commandTimeoutMs));
    return askAsHolder(lease, ask, (state) => state !== undefined);
  }

  /** @returns false if the call is not that attempt's any more @throws LeaseLostError  the same @throws StoreError */
  async save(lease: Lease, data: string): Promise<boolean> {
    const { session } = this.#place;
    const { owner } = lease;
    this.#saves += 1;
    const number = this.#saves;
    const args = { owner, data, number };
    const ask = () =>
      insist(session, () => call(this.#caller, recipesOnceSave, { record: this.key }, args, session.commandTimeoutMs));
    const reply = await askAsHolder(lease, ask, ({ outcome }) => outcome !== "saved");
    if (reply.outcome !== "saved") return false;
    // Of two that are saved at once, the answer to the older may come later.
    const granted = this.#grants.get(owner);
    if (granted !== undefined && granted.saves < number) {
      this.#grants.set(owner, { ...granted, saved: data, saves: number });
    }
    return true;
  }

  /** Ends a call that is blocked. @returns the state in which it is if it is not blocked @throws StoreError */
  async resolve({ state, text }: Ending): Promise<string | undefined> {
    const { session, keepMs } = this.#place;
    const args = { state, value: text, keepMs, channel: this.channel };
    const reply = await insist(session, () =>
      call(this.#caller, recipesOnceResolve, { record: this.key }, args, session.commandTimeoutMs),
    );
    return reply.outcome === "resolved" ? undefined : (reply.state[0] ?? "");
  }

  /** What has become of it; undefined if there is no record. @throws StoreError */
  async look(timeoutMs: number): Promise<Looked | undefined> {
    const reply = await call(this.#caller, recipesOnceInspect, { record: this.key }, {}, timeoutMs);
    if (reply.outcome === "none") return undefined;
    const { words, ...facts } = reply;
    const [state = "", owner = ""] = words;
    return { ...facts, state, owner };
  }

  async inspect(_owner: string | undefined, timeoutMs: number): Promise<State> {
    const looked = await this.look(timeoutMs);
    const isHeld = looked?.state === "running" && looked.leaseLeftMs > 0;
    const holders = isHeld ? [{ owner: looked.owner, token: looked.token, leaseLeftMs: looked.leaseLeftMs }] : [];
    return { holders, token: looked?.token, waiterCount: 0, waiters: [], ahead: undefined };
  }

  adopt(): Promise<never> {
    return Promise.reject(new UnsupportedError(this.name, "An attempt stays with the process that has begun it."));
  }

  forceRelease(): Promise<never> {
    return Promise.reject(new UnsupportedError(this.name, "An attempt ends by itself, when its process is dead."));
  }

  /** A record lives longer than the lease in it. */
  #keepMs(leaseMs: number): number {
    return Math.max(this.#place.keepMs, leaseMs);
  }

  async #settle(owner: string, { state, text }: Ending, timeoutMs: number): Promise<string | undefined> {
    const args = { owner, state, value: text, keepMs: this.#place.keepMs, channel: this.channel };
    const reply = await call(this.#caller, recipesOnceSettle, { record: this.key }, args, timeoutMs);
    return reply.outcome === "settled" ? undefined : (reply.state[0] ?? "");
  }
}

/** A record as the server has it. */
export interface Looked {
  readonly state: string;
  readonly owner: string;
  readonly token: number;
  readonly attempt: number;
  readonly firstMs: number;
  readonly sinceMs: number;
  readonly leaseLeftMs: number;
  /** 0 if it has not ended. */
  readonly endedMs: number;
}
