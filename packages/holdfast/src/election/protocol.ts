/** The protocol of an election: those of a mutex, and what a leader says. Each is one script call. */
import { call } from "../core/call.js";
import type { LockKeys } from "../core/keys.js";
import type { Claim, ForcedRelease, Grant, NotHeld } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import {
  electionAnnounce,
  electionExtend,
  electionLeader,
  electionProclaim,
  electionResign,
} from "../generated/scripts.js";
import { type MutexKeys, MutexProtocol } from "../mutex/protocol.js";

/** What the protocol of one election needs to know. */
export interface ElectionPlace {
  readonly store: Store;
  readonly name: string;
  readonly keys: LockKeys;
  /** What a client id is appended to for its channel. */
  readonly inbox: string;
}

/** Who leads, as the server tells it. */
export interface LeaderRecord {
  readonly value: string;
  readonly term: number;
  /** How many terms there were on record, this one included. */
  readonly terms: number;
  readonly owner: string;
  readonly leaseLeftMs: number;
}

/** Which of a leader's proclamations one is. */
interface Leader {
  readonly owner: string;
  readonly token: number;
}

/** The protocol of one election. */
export class ElectionProtocol extends MutexProtocol {
  /** Where observers listen. */
  readonly channel: string;
  /** A leader may work for long at once, and leads for others from its first message. */
  readonly confirmsFirst = true;
  readonly #record: string;

  constructor({ store, name, keys, inbox }: ElectionPlace) {
    super({ store, name, key: undefined, keys, inbox }, "election");
    this.channel = `${keys.base}:leader`;
    this.#record = `${keys.base}:value`;
  }

  /** Its record is renewed too, by a script of its own. */
  override get renewAll(): undefined {
    return undefined;
  }

  override extend(
    { claim: { owner }, token: term }: Grant,
    leaseMs: number,
    timeoutMs: number,
  ): Promise<"extended" | NotHeld> {
    return call(this, electionExtend, this.#keys(), { owner, term, leaseMs }, timeoutMs).then(({ outcome }) => outcome);
  }

  override release({ claim: { owner }, token: term }: Grant, timeoutMs: number): Promise<"released" | NotHeld> {
    const args = { owner, term, inbox: this.inbox, channel: this.channel };
    return call(this, electionResign, this.#keys(), args, timeoutMs).then(({ outcome }) => outcome);
  }

  override async leave(claim: Claim, timeoutMs: number): Promise<void> {
    await super.leave(claim, timeoutMs);
    // It may have led, as when its Holdfast closes.
    await this.#announce(timeoutMs);
  }

  override async adopt(from: string, to: Grant, timeoutMs: number): Promise<"adopted" | NotHeld> {
    const outcome = await super.adopt(from, to, timeoutMs);
    // Who missed this learns of the new owner in time; the adoption stands.
    if (outcome === "adopted") await this.#announce(timeoutMs).catch(() => {});
    return outcome;
  }

  override async forceRelease(whose: ForcedRelease, timeoutMs: number): Promise<boolean> {
    const isReleased = await super.forceRelease(whose, timeoutMs);
    if (isReleased) await this.#announce(timeoutMs).catch(() => {});
    return isReleased;
  }

  /** Says what the leader stands for; `number` tells its proclamations apart. */
  async proclaim(
    { owner, token: term }: Leader,
    value: string,
    number: number,
    leaseMs: number,
    timeoutMs: number,
  ): Promise<"proclaimed" | NotHeld> {
    const args = { owner, term, value, number, leaseMs, channel: this.channel };
    return (await call(this, electionProclaim, this.#keys(), args, timeoutMs)).outcome;
  }

  /** Who leads; undefined if nobody does. */
  async leader(timeoutMs: number): Promise<LeaderRecord | undefined> {
    const reply = await call(this, electionLeader, this.#keys(), {}, timeoutMs);
    if (reply.outcome === "vacant") return undefined;
    const [owner = "", value = ""] = reply.texts;
    const { term, terms } = reply;
    return { owner, value, term, terms, leaseLeftMs: reply.restMs < 0 ? Infinity : reply.restMs };
  }

  async #announce(timeoutMs: number): Promise<void> {
    await call(this, electionAnnounce, { lock: this.keys.lock }, { channel: this.channel }, timeoutMs);
  }

  #keys(): MutexKeys & { readonly record: string } {
    return { ...this.keys, record: this.#record };
  }
}
