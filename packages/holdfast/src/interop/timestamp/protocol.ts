/** The protocol of a lock that is shared with clients of a timestamp protocol: each one script call. */

import {
  interopTimestampAcquire,
  interopTimestampExtend,
  interopTimestampForceRelease,
  interopTimestampInspect,
  interopTimestampRelease,
} from "../../generated/timestamp-scripts.js";
import { type Store, UnsupportedError } from "../../index.js";
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
} from "../../internal.js";
import type { TimestampDialect } from "./dialect.js";
import { ForeignValueError } from "./foreign-value-error.js";
import { type PeerEvent, publishPeer } from "./peer-events.js";
import { leaseArgs, newMark, type Wire } from "./wire.js";

/** Where a lock is, and how it is written. */
export interface TimestampPlace {
  readonly session: Session;
  readonly name: string;
  readonly dialect: TimestampDialect;
  readonly wire: Wire;
  /** As the other clients spell it. */
  readonly key: string;
  /** Where our own clients hear of releases; empty if they do not. */
  readonly channel: string;
  /** Whether a release deletes what a client has written that came too late. */
  readonly clearsOverwritten: boolean;
}

/**
 * The keys beside the one that is shared, in its slot of a cluster.
 *
 * Two words, because the keys `a` and `{a}` are two locks: braces that are put around a key are not those that it has.
 */
export function ownKeys(key: string): { readonly record: string; readonly fence: string } {
  const base = /\{[^}]+\}/.test(key) ? `${key}:holdfast-tag` : `{${key}}:holdfast`;
  return { record: `${base}:owner`, fence: `${base}:fence` };
}

/** See the file header. */
export class TimestampProtocol implements LockProtocol {
  readonly kind = "timestamp";
  readonly name: string;
  readonly key: string;
  readonly exported: undefined;
  readonly store: Store;
  readonly #place: TimestampPlace;
  readonly #keys: { readonly lock: string; readonly record: string; readonly fence: string };
  /** The last value that was found to be too far ahead, which is told of once. */
  #aheadValue: string | undefined;

  constructor(place: TimestampPlace) {
    this.#place = place;
    this.name = place.name;
    this.key = place.key;
    this.store = place.session.store;
    this.#keys = { lock: place.key, ...ownKeys(place.key) };
  }

  get confirm(): LockProtocol["confirm"] {
    return this.store.confirmsGrants === true ? this.#confirm : undefined;
  }

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
        this.#tell("taken-over", value, owner, reply.lateMs);
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
      this.#tell("overwritten", reply.words[0] ?? "", owner);
      // What a store does so that replicas have a renewal, it does for a plain one.
      return this.store.confirmsGrants === true ? this.extend(grant, leaseMs, timeoutMs) : "extended";
    }
    return this.#told(reply.outcome, owner);
  }

  async release({ claim: { owner }, token }: Grant, timeoutMs: number): Promise<"released" | NotHeld> {
    const reply = await this.#release(owner, token, timeoutMs);
    if (reply.outcome === "overwritten") {
      this.#tell("overwritten", reply.words[0] ?? "", owner);
      return "released";
    }
    return this.#told(reply.outcome, owner);
  }

  async leave({ owner }: Claim, timeoutMs: number): Promise<void> {
    await this.#release(owner, "", timeoutMs);
  }

  adopt(): Promise<never> {
    const why = "A lease of a lock that is shared with another system stays with the Holdfast that acquired it.";
    return Promise.reject(new UnsupportedError(this.name, why));
  }

  async forceRelease(whose: ForcedRelease, timeoutMs: number): Promise<boolean> {
    const { session, channel } = this.#place;
    const { owner = "", token = "", note = "" } = whose;
    const { unitMs, marginMs, reached } = this.#place.wire;
    const args = { owner, token, unitMs, marginMs, reached, note, inbox: session.inboxPrefix, channel };
    const reply = await call(this, interopTimestampForceRelease, this.#keys, args, timeoutMs);
    return reply.outcome === "released";
  }

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

  /** See `LockProtocol.confirm`. */
  readonly #confirm = (granted: Grant, timeoutMs: number): Promise<"extended" | NotHeld> =>
    this.extend(granted, granted.claim.leaseMs, timeoutMs);

  #told<Outcome extends string>(outcome: Outcome | "deleted", owner: string): Outcome | "forgotten" {
    if (outcome !== "deleted") return outcome;
    this.#tell("deleted", "", owner);
    // Others may have had it since, for all that can be known.
    return "forgotten";
  }

  /** A value of another client that ends in `endsInMs`. */
  #compareClocks(value: string, endsInMs: number): void {
    const aheadMs = Math.ceil(endsInMs - this.#place.wire.longestMs + this.#place.wire.skewMs);
    if (endsInMs <= this.#place.wire.longestMs || value === this.#aheadValue) return;
    this.#aheadValue = value;
    this.#tell("clock-ahead", value, "", aheadMs);
  }

  #tell(what: PeerEvent["what"], value: string, owner: string, ms?: number): void {
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
