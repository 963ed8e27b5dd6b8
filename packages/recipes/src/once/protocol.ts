/** The lock protocol of `once`. Each step is one script call. */

import { type Lease, type Store, UnsupportedError } from "holdfast";
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
} from "holdfast/internal";
import {
  recipesOnceBegin,
  recipesOnceExtend,
  recipesOnceInspect,
  recipesOnceLeave,
  recipesOnceReclaim,
  recipesOnceResolve,
  recipesOnceSave,
  recipesOnceSettle,
} from "../generated/once.js";
import { OnceBlockedError, OnceMismatchError } from "./errors.js";

/** Data that comes with a grant, besides its token. */
export interface Granted {
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** Server time at which the first attempt began, in milliseconds since 1970. */
  readonly firstMs: number;
  /** Data saved by this or an earlier attempt, as text. */
  readonly saved: string | undefined;
  /** Number of the last `save` of this attempt that the server confirmed. */
  readonly saves: number;
}

/** The call has already ended, with this outcome. Thrown only to end the wait; users never see this error. */
export class Over extends Error {
  readonly state: "done" | "failed" | "bare";
  /** The encoded value or error; empty for `bare`. */
  readonly text: string;
  /** Fencing token of the attempt that ended the call. */
  readonly token: number;
  /** Number of the attempt that ended the call. */
  readonly attempt: number;
  /** Server time at which the first attempt began, in milliseconds since 1970. */
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
  /** The encoded value or error, or why the call is blocked; empty for `bare` and `released`. */
  readonly text: string;
}

/** Identity and settings of one call. */
export interface OncePlace {
  readonly session: Session;
  readonly prefix: string;
  /** Scope and key, combined by `nameOf`. */
  readonly name: string;
  /** From `fingerprintOf`; empty if there is none. */
  readonly fingerprint: string;
  /** Whether a different fingerprint is also refused after the call was released; false if undefined. */
  readonly strictFingerprint?: boolean | undefined;
  /** How long the record is kept after its last change, in milliseconds. */
  readonly keepMs: number;
}

/** The lock protocol of one call of `once`. */
export class OnceProtocol implements LockProtocol {
  readonly kind = "once";
  readonly name: string;
  readonly key: string;
  /** Channel on which the end of an attempt is published. */
  readonly channel: string;
  readonly exported: undefined;
  readonly #place: OncePlace;
  readonly #caller: NamedStore;
  readonly #grants = new Map<string, Granted>();
  /**
   * Attempts whose work has begun. Their claims are not cleaned up: no other attempt may begin before their lease has
   * ended.
   */
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

  /** Restores an attempt that a failover has lost. */
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

  /** Records that this owner's attempt has begun its work. @returns the data that came with the grant */
  begins(owner: string): Granted {
    const granted = this.#grants.get(owner);
    if (granted === undefined) throw new Error(`${owner} was never granted ${this.name}`);
    this.#begun.add(owner);
    return granted;
  }

  /**
   * Records that the work has ended and the call was released. Cleanup may now release a grant to a late copy of a
   * request.
   */
  ends(owner: string): void {
    this.#begun.delete(owner);
  }

  /** @throws Over, OnceMismatchError, OnceBlockedError  waiting would not help */
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

  /** Releases the call, so that the next caller runs it. */
  async release({ claim: { owner } }: Grant, timeoutMs: number): Promise<"released" | NotHeld> {
    const reply = await this.#settle(owner, { state: "released", text: "" }, timeoutMs);
    return reply === undefined ? "released" : reply === "" ? "forgotten" : "claimed";
  }

  /** Whether the owner's attempt has begun its work. If so, cleanup must not release it. */
  isKept(owner: string): boolean {
    return this.#begun.has(owner);
  }

  async leave({ owner }: Claim, timeoutMs: number): Promise<void> {
    if (this.isKept(owner)) return;
    await call(this.#caller, recipesOnceLeave, { record: this.key }, { owner, channel: this.channel }, timeoutMs);
  }

  /**
   * Ends the attempt and records its outcome. Without a reply, retries for about two command timeouts.
   *
   * @returns undefined if the outcome was recorded; otherwise the current state of the call, empty if there is no
   *   record
   * @throws LeaseLostError  the call no longer belongs to that attempt
   * @throws StoreError      the outcome may or may not be recorded
   */
  settle(lease: Lease, ending: Ending): Promise<string | undefined> {
    const { session } = this.#place;
    const ask = () => insist(session, () => this.#settle(lease.owner, ending, session.commandTimeoutMs));
    return askAsHolder(lease, ask, (state) => state !== undefined);
  }

  /**
   * @returns false if the call no longer belongs to that attempt
   * @throws LeaseLostError  for the same reason
   * @throws StoreError
   */
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
    // With two concurrent saves, the reply to the older one may arrive later.
    const granted = this.#grants.get(owner);
    if (granted !== undefined && granted.saves < number) {
      this.#grants.set(owner, { ...granted, saved: data, saves: number });
    }
    return true;
  }

  /**
   * Resolves a blocked call.
   *
   * @returns undefined if resolved; otherwise the current state of the call
   * @throws StoreError
   */
  async resolve({ state, text }: Ending): Promise<string | undefined> {
    const { session, keepMs } = this.#place;
    const args = { state, value: text, keepMs, channel: this.channel };
    const reply = await insist(session, () =>
      call(this.#caller, recipesOnceResolve, { record: this.key }, args, session.commandTimeoutMs),
    );
    return reply.outcome === "resolved" ? undefined : (reply.state[0] ?? "");
  }

  /** Reads the record; undefined if there is none. @throws StoreError */
  async read(timeoutMs: number): Promise<CallRecord | undefined> {
    const reply = await call(this.#caller, recipesOnceInspect, { record: this.key }, {}, timeoutMs);
    if (reply.outcome === "none") return undefined;
    const { words, ...facts } = reply;
    const [state = "", owner = ""] = words;
    return { ...facts, state, owner };
  }

  async inspect(_owner: string | undefined, timeoutMs: number): Promise<State> {
    const record = await this.read(timeoutMs);
    const isHeld = record?.state === "running" && record.leaseLeftMs > 0;
    const holders = isHeld ? [{ owner: record.owner, token: record.token, leaseLeftMs: record.leaseLeftMs }] : [];
    return { holders, token: record?.token, waiterCount: 0, waiters: [], ahead: undefined };
  }

  adopt(): Promise<never> {
    return Promise.reject(new UnsupportedError(this.name, "An attempt cannot move to another process."));
  }

  forceRelease(): Promise<never> {
    return Promise.reject(
      new UnsupportedError(
        this.name,
        "An attempt cannot be force-released. If its process crashes, it ends when its lease expires.",
      ),
    );
  }

  /** A record must outlive the lease in it. */
  #keepMs(leaseMs: number): number {
    return Math.max(this.#place.keepMs, leaseMs);
  }

  async #settle(owner: string, { state, text }: Ending, timeoutMs: number): Promise<string | undefined> {
    const args = { owner, state, value: text, keepMs: this.#place.keepMs, channel: this.channel };
    const reply = await call(this.#caller, recipesOnceSettle, { record: this.key }, args, timeoutMs);
    return reply.outcome === "settled" ? undefined : (reply.state[0] ?? "");
  }
}

/** The record of a call as stored on the server. */
export interface CallRecord {
  readonly state: string;
  /** Owner id of the last attempt's claim. */
  readonly owner: string;
  /** Fencing token of the last attempt. */
  readonly token: number;
  /** Number of the last attempt. */
  readonly attempt: number;
  /** Server time at which the first attempt began, in milliseconds since 1970. */
  readonly firstMs: number;
  /** When the last attempt began, on the same clock. */
  readonly sinceMs: number;
  /** Remaining lease time in milliseconds; 0 if no attempt is running. */
  readonly leaseLeftMs: number;
  /** When the last attempt ended, on the same clock; 0 if it has not ended. */
  readonly endedMs: number;
}
