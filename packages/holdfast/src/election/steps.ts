/** The atomic steps of an election: those of a mutex, and what a leader says. Each is one script call. */
import { call } from "../core/call.js";
import type { LockKeys } from "../core/names.js";
import type { NotHeld, Steps } from "../core/steps.js";
import type { Store } from "../core/store.js";
import {
  electionAnnounce,
  electionExtend,
  electionLeader,
  electionProclaim,
  electionResign,
} from "../generated/scripts.js";
import { mutexSteps } from "../mutex/steps.js";

/** What the steps of one election need to know. */
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
  readonly owner: string;
  readonly leaseLeftMs: number;
}

/** The steps of one election. */
export interface ElectionSteps extends Steps {
  /** Where observers listen. */
  readonly channel: string;

  /** Says what the leader stands for; `number` tells its proclamations apart. */
  proclaim(
    leader: { readonly owner: string; readonly token: number },
    value: string,
    number: number,
    leaseMs: number,
    timeoutMs: number,
  ): Promise<"proclaimed" | NotHeld>;

  /** Who leads; undefined if nobody does. */
  leader(timeoutMs: number): Promise<LeaderRecord | undefined>;
}

/** The steps of the election at `place`. */
export function electionSteps({ store, name, keys, inbox }: ElectionPlace): ElectionSteps {
  const caller = { store, lockName: name };
  const mutex = mutexSteps({ store, name, key: undefined, keys: { ...keys, lock: keys.base }, inbox });
  const { lock, fence, queue } = mutex.keys;
  const record = `${keys.base}:value`;
  const channel = `${keys.base}:leader`;
  const announce = async (timeoutMs: number): Promise<void> => {
    await call(caller, electionAnnounce, {}, { channel }, timeoutMs);
  };

  return {
    ...mutex,
    kind: "election",
    channel,

    async extend({ claim: { owner }, token: term }, leaseMs, timeoutMs) {
      return (await call(caller, electionExtend, { lock, fence, record }, { owner, term, leaseMs }, timeoutMs)).outcome;
    },

    async release({ claim: { owner }, token: term }, timeoutMs) {
      const args = { owner, term, inbox, channel };
      return (await call(caller, electionResign, { lock, fence, queue, record }, args, timeoutMs)).outcome;
    },

    async leave(claim, timeoutMs) {
      await mutex.leave(claim, timeoutMs);
      // It may have led, as when its Holdfast closes.
      await announce(timeoutMs);
    },

    async adopt(from, to, timeoutMs) {
      const outcome = await mutex.adopt(from, to, timeoutMs);
      // Who missed this learns of the new owner in time; the adoption stands.
      if (outcome === "adopted") await announce(timeoutMs).catch(() => {});
      return outcome;
    },

    async forceRelease(whose, timeoutMs) {
      const isReleased = await mutex.forceRelease(whose, timeoutMs);
      if (isReleased) await announce(timeoutMs).catch(() => {});
      return isReleased;
    },

    async proclaim({ owner, token: term }, value, number, leaseMs, timeoutMs) {
      const args = { owner, term, value, number, leaseMs, channel };
      return (await call(caller, electionProclaim, { lock, fence, record }, args, timeoutMs)).outcome;
    },

    async leader(timeoutMs) {
      const reply = await call(caller, electionLeader, { lock, fence, record }, {}, timeoutMs);
      if (reply.outcome === "vacant") return undefined;
      const [owner = "", value = ""] = reply.texts;
      return { owner, value, term: reply.term, leaseLeftMs: reply.restMs < 0 ? Infinity : reply.restMs };
    },
  };
}
