/** The protocol of a timestamp lock. Each operation is one script call. */

import { type Store, UnsupportedError } from "holdfast";
import {
  type AcquireReply,
  type Claim,
  call,
  type ForcedRelease,
  type Grant,
  type LockProtocol,
  type NotHeld,
  type Session,
  type State,
} from "holdfast/internal";
import {
  interopTimestampAcquire,
  interopTimestampExtend,
  interopTimestampForceRelease,
  interopTimestampInspect,
  interopTimestampRelease,
} from "../generated/timestamp.js";
import type { TimestampDialect } from "./dialect.js";
import { ForeignValueError } from "./foreign-value-error.js";
import { type PeerEvent, publishPeer } from "./peer-events.js";
import { leaseArgs, newMark, type Wire } from "./wire.js";

/** The keys, the format and the session of one lock. */
export interface TimestampPlace {
  /** The session of the Holdfast that runs all requests. */
  readonly session: Session;
  /** Name of the lock, as the caller gave it. */
  readonly name: string;
  /** The format of the other clients. */
  readonly dialect: TimestampDialect;
  /** The script arguments that follow from the dialect and the options. */
  readonly wire: Wire;
  /** The key of the lock, exactly as the other clients use it. */
  readonly key: string;
  /** Channel on which Holdfast clients notify each other of releases; empty for none. */
  readonly channel: string;
  /** Whether a release deletes the value of a client that came too late and has overwritten Holdfast's. */
  readonly clearsOverwritten: boolean;
}

/**
 * Returns Holdfast's own keys for a lock: the record of its owner and the fence. They are in the cluster slot of `key`.
 *
 * Keys with and without a hash tag get different suffixes, because `a` and `{a}` are different locks.
 */
export function ownKeys(key: string): { readonly record: string; readonly fence: string } {
  const base = /\{[^}]+\}/.test(key) ? `${key}:holdfast-tag` : `{${key}}:holdfast`;
  return { record: `${base}:owner`, fence: `${base}:fence` };
}

/** Implements `LockProtocol` for a timestamp lock. */
export class TimestampProtocol implements LockProtocol {
  /** See `LockProtocol.kind`. */
  readonly kind = "timestamp";
  /** Name of the lock, as the caller gave it. */
  readonly name: string;
  /** Key of the lock on the server. */
  readonly key: string;
  /** Always undefined: leases of a shared lock cannot be exported. */
  readonly exported: undefined;
  /** Runs the scripts. */
  readonly store: Store;
  readonly #place: TimestampPlace;
  readonly #keys: { readonly lock: string; readonly record: string; readonly fence: string };
  /** Last value that was reported as too far ahead. Each value is reported only once. */
  #aheadValue: string | undefined;

  /** Sends nothing. */
  constructor(place: TimestampPlace) {
    this.#place = place;
    this.name = place.name;
    this.key = place.key;
    this.store = place.session.store;
    this.#keys = { lock: place.key, ...ownKeys(place.key) };
  }

  /** See `LockProtocol.confirm`. Defined only if replicas must acknowledge a grant. */
  get confirm(): LockProtocol["confirm"] {
    return this.store.confirmsGrants === true ? this.#confirm : undefined;
  }

  /**
   * Takes the lock if it is free or has expired.
   *
   * @throws ForeignValueError  the key contains no lock of this dialect
   */
  async acquire(claim: Claim, _enqueue: boolean, timeoutMs: number): Promise<AcquireReply> {
    const { dialect, wire, session } = this.#place;
    const { unitMs, padding, before, graceMs, skewMs, latestMs, marginMs, reached } = wire;
    const after = newMark(dialect, session.runtime);
    const args = {
      owner: claim.owner,
      ...leaseArgs(wire, claim.leaseMs),
      unitMs,
      padding,
      before,
      after,
      graceMs,
      skewMs,
      latestMs,
      marginMs,
      reached,
    };
    const reply = await call(this, interopTimestampAcquire, this.#keys, args, timeoutMs);
    switch (reply.outcome) {
      case "granted":
        return { outcome: "granted", token: reply.token };
      case "succeeded": {
        const [value = "", owner = ""] = reply.words;
        this.#publish("taken-over", value, owner, reply.lateMs);
        return { outcome: "granted", token: reply.token };
      }
      case "held": {
        const { restMs, nowUs, endMs } = reply;
        const [value = "", owner = ""] = reply.words;
        if (owner === "") this.#compareClocks(value, endMs - nowUs / 1_000);
        return { outcome: "refused", restMs, nowUs };
      }
      case "alien":
        throw this.#alien(reply.words[0] ?? "");
    }
  }

  /** Renews the lease, and restores the value if a client that came too late has overwritten it. */
  async extend(grant: Grant, leaseMs: number, timeoutMs: number): Promise<"extended" | NotHeld> {
    const { owner } = grant.claim;
    const { dialect, wire, session } = this.#place;
    const { unitMs, padding, before, graceMs, skewMs, latestMs } = wire;
    const after = newMark(dialect, session.runtime);
    const args = {
      owner,
      token: grant.token,
      ...leaseArgs(wire, leaseMs),
      unitMs,
      padding,
      before,
      after,
      graceMs,
      skewMs,
      latestMs,
    };
    const reply = await call(this, interopTimestampExtend, this.#keys, args, timeoutMs);
    if (reply.outcome === "overwritten") {
      this.#publish("overwritten", reply.words[0] ?? "", owner);
      // The store makes replicas acknowledge only a plain renewal, which has the reply 1. So renew once more.
      return this.store.confirmsGrants === true ? this.extend(grant, leaseMs, timeoutMs) : "extended";
    }
    return this.#reportDeleted(reply.outcome, owner);
  }

  /** Releases the lock if the grant still owns it. */
  async release({ claim: { owner }, token }: Grant, timeoutMs: number): Promise<"released" | NotHeld> {
    const reply = await this.#release(owner, token, timeoutMs);
    if (reply.outcome === "overwritten") {
      this.#publish("overwritten", reply.words[0] ?? "", owner);
      return "released";
    }
    return this.#reportDeleted(reply.outcome, owner);
  }

  /** Releases the lock if the server granted it to a claim that has given up. */
  async leave({ owner }: Claim, timeoutMs: number): Promise<void> {
    await this.#release(owner, "", timeoutMs);
  }

  /** Always rejects. @throws UnsupportedError  leases of a shared lock cannot be exported */
  adopt(): Promise<never> {
    const why = "A lease of a lock that is shared with another system stays with the Holdfast that acquired it.";
    return Promise.reject(new UnsupportedError(this.name, why));
  }

  /** Releases the lock of a holder of either system. Returns false if that holder does not hold it. */
  async forceRelease(whose: ForcedRelease, timeoutMs: number): Promise<boolean> {
    const { session, channel } = this.#place;
    const { owner = "", token = "", note = "" } = whose;
    const { unitMs, marginMs, reached } = this.#place.wire;
    const args = { owner, token, unitMs, marginMs, reached, note, inbox: session.inboxPrefix, channel };
    const reply = await call(this, interopTimestampForceRelease, this.#keys, args, timeoutMs);
    return reply.outcome === "released";
  }

  /** Returns the holders, of either system. @throws ForeignValueError  the key contains no lock of this dialect */
  async inspect(_owner: string | undefined, timeoutMs: number): Promise<State> {
    const { unitMs, skewMs, marginMs, reached } = this.#place.wire;
    const args = { unitMs, skewMs, marginMs, reached };
    const reply = await call(this, interopTimestampInspect, this.#keys, args, timeoutMs);
    if (reply.outcome === "alien") throw this.#alien(reply.words[0] ?? "");
    const none = { waiterCount: 0, waiters: [], ahead: undefined };
    const token = reply.token === 0 ? undefined : reply.token;
    if (reply.outcome === "free") return { holders: [], token, ...none };
    const [owner = "", value = ""] = reply.words;
    const holder = { owner, token: reply.outcome === "foreign" ? undefined : token, leaseLeftMs: leftMs(reply.restMs) };
    const other = { owner: value, token: undefined, leaseLeftMs: reply.outcome === "both" ? leftMs(reply.otherMs) : 0 };
    return { holders: reply.outcome === "both" ? [holder, other] : [holder], token, ...none };
  }

  #release(
    owner: string,
    token: number | "",
    timeoutMs: number,
  ): Promise<
    | { readonly outcome: "released" | "deleted" | NotHeld }
    | { readonly outcome: "overwritten"; readonly words: readonly string[] }
  > {
    const { wire, channel, clearsOverwritten } = this.#place;
    const { unitMs, skewMs, latestMs } = wire;
    const args = { owner, token, unitMs, skewMs, latestMs, clear: clearsOverwritten ? 1 : 0, channel };
    return call(this, interopTimestampRelease, this.#keys, args, timeoutMs);
  }

  /** Renews the lease once, so that replicas acknowledge the grant. */
  readonly #confirm = (granted: Grant, timeoutMs: number): Promise<"extended" | NotHeld> =>
    this.extend(granted, granted.claim.leaseMs, timeoutMs);

  #reportDeleted<Outcome extends string>(outcome: Outcome | "deleted", owner: string): Outcome | "forgotten" {
    if (outcome !== "deleted") return outcome;
    this.#publish("deleted", "", owner);
    // Another client may have held the lock since.
    return "forgotten";
  }

  /** Reports a foreign value if it ends later than a client with a correct clock would write. */
  #compareClocks(value: string, endsInMs: number): void {
    const aheadMs = Math.ceil(endsInMs - this.#place.wire.longestMs + this.#place.wire.skewMs);
    if (endsInMs <= this.#place.wire.longestMs || value === this.#aheadValue) return;
    this.#aheadValue = value;
    this.#publish("clock-ahead", value, "", aheadMs);
  }

  #publish(what: PeerEvent["what"], value: string, owner: string, ms?: number): void {
    const { kind, name, key } = this;
    publishPeer(() => ({ kind, lockName: name, key, what, value, owner: owner === "" ? undefined : owner, ms }));
  }

  #alien(found: string): ForeignValueError {
    return new ForeignValueError(this.name, { key: this.key, found, expected: this.#place.wire.expected });
  }
}

function leftMs(restMs: number): number {
  return restMs < 0 ? Infinity : restMs;
}
