/**
 * The lock protocol of permits, shared by several kinds of lock. Each request is one script call with the keys of one
 * name.
 *
 * The state consists of a capacity, holders that each have a weight, and a queue whose head is never overtaken.
 * Algorithm: our own (docs/adr/001-queue-on-the-server.md). A release grants permits to waiters from the head of the
 * queue for as long as their weights fit.
 */
import { call } from "../core/call.js";
import { CapacityMismatchError } from "../core/errors.js";
import type { LockKeys } from "../core/keys.js";
import type { AcquireReply, Grant, HolderState, LockProtocol, NotHeld, State } from "../core/protocol.js";
import { pauseOf } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import {
  permitsAcquire,
  permitsAdopt,
  permitsExtend,
  permitsForceRelease,
  permitsInspect,
  permitsLeave,
  permitsReclaim,
  permitsRelease,
  permitsResize,
  permitsReweigh,
} from "../generated/permits.js";
import { confirmTogether } from "./confirmations.js";

/** Maximum number of waiters and holders that `inspect` lists. */
const NAMED_WAITERS = 100;
const NAMED_HOLDERS = 1_000;
/** How long the server keeps a capacity set by `resize` after its last use, in ms. */
const RESIZED_KEEP_MS = 30 * 24 * 3_600_000;

/** The parameters of the protocol for one name. */
export interface PermitsPlace {
  readonly store: Store;
  readonly kind: string;
  readonly name: string;
  readonly keys: LockKeys;
  /** Prefix of inbox channels: the channel of a client is this plus its client id. */
  readonly inbox: string;
  /** The capacity that this process was configured with. */
  readonly declared: number;
  /** Grants up to this weight get slot numbers; 0 for none. */
  readonly numbered: number;
}

/** A hold as the server sees it, with its permits. */
export interface PermitHolderState extends HolderState {
  /** The number of permits. */
  readonly weight: number;
  readonly slots: readonly number[];
}

/** The state of the permits of one name on the server. */
export interface PermitsState extends State {
  /** At most 1,000 holders, ordered by the end of their lease, earliest first. */
  readonly holders: readonly PermitHolderState[];
  /** The number of permits; undefined if none is stored. */
  readonly capacity: number | undefined;
  /** The number of permits held. */
  readonly used: number;
}

/** The lock protocol, plus the operations that only permits have. */
export interface PermitsProtocol extends LockProtocol {
  inspect(owner: string | undefined, timeoutMs: number): Promise<PermitsState>;

  /** Changes the capacity regardless of holders and waiters. Idempotent for each `request`. */
  resize(capacity: number, request: string, timeoutMs: number): Promise<void>;

  /**
   * Changes the weight of a grant.
   *
   * @param change  must be higher than in every earlier change of the same claim
   * @returns the current token of the grant; null if other holders have the permits that it would need
   */
  reweigh(grant: Grant, weight: number, change: number, timeoutMs: number): Promise<number | null | NotHeld>;
}

/** Creates the protocol of the permits at `place`. */
export function permitsProtocol(place: PermitsPlace): PermitsProtocol {
  const { kind, name, inbox, declared, numbered } = place;
  const caller = { store: place.store, name };
  const state = place.keys.base;
  const fence = `${state}:fence`;
  const holders = `${state}:holders`;
  const queue = `${state}:queue`;
  const held = { state, fence, holders, slots: `${state}:slots` };
  const pause = `${state}:pause`;
  const keys = { ...held, queue, pause };
  const granting = { inbox, numbered };
  const marker = place.store.lineageKey?.(state);

  return {
    kind,
    name,
    key: state,
    inbox,
    exported: {},
    permits: declared,

    async acquire({ owner, leaseMs, amount }, enqueue, timeoutMs, throughPause = false): Promise<AcquireReply> {
      const mayQueue = enqueue ? (throughPause ? 2 : 1) : 0;
      const args = { owner, leaseMs, weight: amount, enqueue: mayQueue, declared, ...granting };
      const reply = await call(caller, permitsAcquire, keys, args, timeoutMs);
      switch (reply.outcome) {
        case "granted":
          return { outcome: "granted", token: reply.token, slots: "slots" in reply ? toSlots(reply.slots[0]) : [] };
        case "mismatch":
          throw new CapacityMismatchError(name, { capacity: reply.present, declared });
        case "heavy":
          throw new CapacityMismatchError(name, { capacity: reply.present, declared, permits: amount });
        default:
          return reply;
      }
    },

    async extend({ claim: { owner }, token }, leaseMs, timeoutMs) {
      return (await call(caller, permitsExtend, held, { owner, token, leaseMs }, timeoutMs)).outcome;
    },

    ...(place.store.confirmsGrants === true &&
      ({
        async confirm({ claim: { owner, leaseMs }, token }, timeoutMs) {
          return (await call(caller, permitsExtend, held, { owner, token, leaseMs }, timeoutMs)).outcome;
        },
      } satisfies Pick<LockProtocol, "confirm">)),

    confirmHandOff: (granted, timeoutMs) =>
      confirmTogether({ store: place.store, name, keys: held }, granted, timeoutMs),

    ...(marker !== undefined &&
      ({
        async reclaim({ claim: { owner, amount }, token, slots }, leaseMs, timeoutMs) {
          const args = { owner, token, leaseMs, weight: amount, numbers: slots.join(","), declared };
          return (await call(caller, permitsReclaim, { ...keys, marker }, args, timeoutMs)).outcome;
        },
      } satisfies Pick<LockProtocol, "reclaim">)),

    async release({ claim: { owner }, token }, timeoutMs) {
      return (await call(caller, permitsRelease, keys, { owner, token, ...granting }, timeoutMs)).outcome;
    },

    async leave({ owner }, timeoutMs) {
      await call(caller, permitsLeave, keys, { owner, ...granting }, timeoutMs);
    },

    async adopt(from, { claim: { owner, leaseMs }, token }, timeoutMs) {
      return (await call(caller, permitsAdopt, held, { owner, from, token, leaseMs }, timeoutMs)).outcome;
    },

    async forceRelease({ owner = "", token = "", note = "" }, timeoutMs) {
      const reply = await call(caller, permitsForceRelease, keys, { owner, token, note, ...granting }, timeoutMs);
      return reply.outcome === "released";
    },

    async resize(size, request, timeoutMs) {
      const args = { size, declared, keepMs: RESIZED_KEEP_MS, request, ...granting };
      await call(caller, permitsResize, keys, args, timeoutMs);
    },

    async reweigh({ claim: { owner }, token }, weight, change, timeoutMs) {
      const args = { owner, token, weight, change, ...granting };
      const reply = await call(caller, permitsReweigh, keys, args, timeoutMs);
      if (reply.outcome === "reweighed") return reply.latest;
      return reply.outcome === "refused" ? null : reply.outcome;
    },

    async inspect(owner = "", timeoutMs): Promise<PermitsState> {
      const args = { owner, most: NAMED_WAITERS, mostHeld: NAMED_HOLDERS };
      const reply = await call(caller, permitsInspect, { state, fence, holders, queue, pause }, args, timeoutMs);
      const [paused = "", ...rest] = reply.rest;
      return {
        holders: parseHolders(rest.slice(0, reply.named * 3)),
        token: reply.token === 0 ? undefined : reply.token,
        waiterCount: reply.waiters,
        waiters: rest.slice(reply.named * 3),
        ahead: reply.ahead < 0 ? undefined : reply.ahead,
        capacity: reply.capacity === 0 ? undefined : reply.capacity,
        used: reply.used,
        ...pauseOf(paused),
      };
    },
  };
}

/** Parses slot numbers, such as `0,1,2`. */
function toSlots(text = ""): number[] {
  return text === "" ? [] : text.split(",").map(Number);
}

/** Parses triples of owner, grant and remaining lease in ms. A grant is `<weight>/<token>/<slot>,<slot>…` or longer. */
function parseHolders(listed: readonly string[]): PermitHolderState[] {
  const holders: PermitHolderState[] = [];
  for (let i = 0; i + 2 < listed.length; i += 3) {
    const [owner = "", grant = "", restMs = ""] = listed.slice(i, i + 3);
    const [weight, token, slots] = grant.split("/");
    holders.push({
      owner,
      token: Number(token),
      leaseLeftMs: Number(restMs),
      weight: Number(weight),
      slots: toSlots(slots),
    });
  }
  return holders;
}
