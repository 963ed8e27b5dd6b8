/** The lock protocol of an election: that of a mutex, plus the leader's value. Each request is one script call. */
import { call } from "../core/call.js";
import type { Claim, ForcedRelease, Grant, NotHeld } from "../core/protocol.js";
import {
  electionAnnounce,
  electionExtend,
  electionLeader,
  electionProclaim,
  electionResign,
} from "../generated/election.js";
import { type MutexKeys, type MutexPlace, MutexProtocol } from "../mutex/protocol.js";

/** The leader on record at the server. */
export interface LeaderRecord {
  readonly value: string;
  readonly term: number;
  /** The number of terms on record, including this one. */
  readonly terms: number;
  readonly owner: string;
  readonly leaseLeftMs: number;
}

/** The protocol of one election. */
export class ElectionProtocol extends MutexProtocol {
  /** The channel that observers subscribe to. */
  readonly channel: string;
  /**
   * True, because a leader may start long work immediately, and because others see it as the leader only after its
   * first proclamation.
   */
  readonly confirmsFirst = true;
  readonly #record: string;

  constructor(place: Omit<MutexPlace, "key" | "recheckMs">) {
    super(place, "election");
    this.channel = `${place.keys.base}:leader`;
    this.#record = `${place.keys.base}:value`;
  }

  /** Undefined, because elections have their own script, which renews the leader record together with the lease. */
  override get renewAll(): undefined {
    return undefined;
  }

  /** Undefined, because elections have their own script, which also deletes the leader's value. */
  override get releaseFree(): undefined {
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
    // Notify observers, because the claim may have been the leader, for example when the Holdfast instance closes.
    await this.#announce(timeoutMs);
  }

  override async adopt(from: string, to: Grant, timeoutMs: number): Promise<"adopted" | NotHeld> {
    const outcome = await super.adopt(from, to, timeoutMs);
    // Ignore failures: the adoption succeeded, and observers that miss this message learn of the new owner later.
    if (outcome === "adopted") await this.#announce(timeoutMs).catch(() => {});
    return outcome;
  }

  override async forceRelease(whose: ForcedRelease, timeoutMs: number): Promise<boolean> {
    const isReleased = await super.forceRelease(whose, timeoutMs);
    if (isReleased) await this.#announce(timeoutMs).catch(() => {});
    return isReleased;
  }

  /** Stores the value of the leader. `number` identifies the proclamation and rises with each one. */
  async proclaim(
    { owner, token: term }: { readonly owner: string; readonly token: number },
    value: string,
    number: number,
    leaseMs: number,
    timeoutMs: number,
  ): Promise<"proclaimed" | NotHeld> {
    const args = { owner, term, value, number, leaseMs, channel: this.channel };
    return (await call(this, electionProclaim, this.#keys(), args, timeoutMs)).outcome;
  }

  /** The current leader; undefined if there is none. */
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
