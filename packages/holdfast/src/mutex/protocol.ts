/** The lock protocol of a mutex. Each request is one script call for one name, except `renewAll` and `releaseFree`. */
import { call } from "../core/call.js";
import type { LockKeys } from "../core/keys.js";
import type { AcquireReply, Claim, ForcedRelease, Grant, LockProtocol, NotHeld, State } from "../core/protocol.js";
import { parseOwner, pauseOf } from "../core/protocol.js";
import type { Retention } from "../core/retention.js";
import type { Script, Store } from "../core/store.js";
import {
  mutexAcquire,
  mutexAdopt,
  mutexExtend,
  mutexForceRelease,
  mutexInspect,
  mutexLeave,
  mutexReclaim,
  mutexRelease,
  mutexRenew,
} from "../generated/mutex.js";

/** Maximum number of waiters that `inspect` lists. */
const NAMED_WAITERS = 100;

/** How long the fence key outlives a lease. The scripts that take no `fenceMs` hard-code this value. */
const FENCE_MS = 600_000;

/**
 * Releases a mutex that has no waiters, with two commands that a server executes faster than a script: DELIFEQ, and
 * then EXISTS on the queue to detect a claim that has joined it. See docs/adr/149.
 */
const mutexDelete = {
  name: "mutex/delete",
  keys: ["lock", "queue"],
  args: ["owner"],
  replies: [
    { code: 0, outcome: "kept", values: [], rest: null },
    { code: 1, outcome: "released", values: [], rest: null },
    { code: 2, outcome: "waited", values: [], rest: null },
  ],
  sha1: "",
  source: "DELIFEQ EXISTS",
  isNative: true,
} as const satisfies Script;

/** The parts that the protocol of one mutex needs. */
export interface MutexPlace {
  readonly store: Store;
  readonly name: string;
  /** The `key` option of the mutex, if it has one. */
  readonly key?: string | undefined;
  /** The lock key, and the prefix of the other keys. */
  readonly keys: Pick<LockKeys, "base" | "lock">;
  /** Prefix of inbox channels; a client's channel is the prefix plus the client id. */
  readonly inbox: string;
  /**
   * Longest time between a waiter's re-checks, in ms. Set if clients of other libraries release the lock without
   * sending a message.
   */
  readonly recheckMs?: number | undefined;
  /** See `LockProtocol.retain`. */
  readonly retain?: Retention | undefined;
}

/** All keys of one mutex. */
export interface MutexKeys {
  readonly base: string;
  readonly lock: string;
  readonly fence: string;
  readonly queue: string;
  readonly handed: string;
  readonly pause: string;
}

/**
 * The lock protocol of one mutex.
 *
 * The class builds most keys on demand to save memory, because a process may have one of these objects for each of its
 * many leases.
 */
export class MutexProtocol implements LockProtocol {
  readonly kind: string;
  readonly name: string;
  readonly key: string;
  readonly inbox: string;
  readonly recheckMs: number | undefined;
  readonly retain: Retention | undefined;
  readonly store: Store;
  protected readonly base: string;
  /** Stored, because each bulk renewal sends it. */
  readonly #fence: string;
  readonly #isMapped: boolean;
  /** The grant that was last renewed in bulk, and its owner and token in the form that the script takes. */
  #renewed: Grant | undefined;
  #renewedText = "";

  constructor({ store, name, key, keys, inbox, recheckMs, retain }: MutexPlace, kind = "mutex") {
    this.kind = kind;
    this.name = name;
    this.key = keys.lock;
    this.inbox = inbox;
    this.recheckMs = recheckMs;
    this.retain = retain;
    this.store = store;
    this.base = keys.base;
    this.#fence = `${keys.base}:fence`;
    this.#isMapped = key !== undefined;
  }

  get keys(): MutexKeys {
    const { base } = this;
    // Every acquire and release runs this. Building the strings here is cheaper than spreading an object.
    return {
      base,
      lock: this.key,
      fence: this.#fence,
      queue: `${base}:queue`,
      handed: `${base}:handed`,
      pause: `${base}:pause`,
    };
  }

  get exported(): { readonly key?: string } {
    return this.#isMapped ? { key: this.key } : {};
  }

  get confirm(): LockProtocol["confirm"] {
    return this.store.confirmsGrants === true ? this.confirmHandOff : undefined;
  }

  get reclaim(): LockProtocol["reclaim"] {
    return this.store.lineageKey?.(this.key) === undefined ? undefined : this.putBack;
  }

  get renewAll(): LockProtocol["renewAll"] {
    // In a cluster, leases cannot share a request, because one script cannot use keys of several slots. A store that
    // waits for replicas must wait for each lease, so it sends one request per lease.
    return this.store.shardInbox === undefined && this.store.confirmsGrants !== true
      ? MutexProtocol.#renewAll
      : undefined;
  }

  get releaseFree(): LockProtocol["releaseFree"] {
    if (this.store.releasesNatively?.() !== true) return undefined;
    return ({ claim: { owner } }, timeoutMs) =>
      call(this, mutexDelete, this.keys, { owner }, timeoutMs).then(outcomeOf);
  }

  acquire(
    { owner, leaseMs, amount }: Claim,
    enqueue: boolean,
    timeoutMs: number,
    throughPause = false,
  ): Promise<AcquireReply> {
    const { inbox } = this;
    const mayQueue = enqueue ? (throughPause ? 2 : 1) : 0;
    const args = { owner, leaseMs, fenceMs: leaseMs + FENCE_MS, block: amount, enqueue: mayQueue, inbox };
    return call(this, mutexAcquire, this.keys, args, timeoutMs);
  }

  extend({ claim: { owner }, token }: Grant, leaseMs: number, timeoutMs: number): Promise<"extended" | NotHeld> {
    return this.#extend(owner, token, leaseMs, timeoutMs);
  }

  release({ claim: { owner }, token }: Grant, timeoutMs: number, mayHaveRun = false): Promise<"released" | NotHeld> {
    const args = { owner, token, inbox: this.inbox, freed: mayHaveRun ? 1 : 0 };
    return call(this, mutexRelease, this.keys, args, timeoutMs).then(({ outcome }) =>
      outcome === "freed" ? "released" : outcome,
    );
  }

  async leave({ owner }: Claim, timeoutMs: number): Promise<void> {
    await call(this, mutexLeave, this.keys, { owner, inbox: this.inbox }, timeoutMs);
  }

  adopt(
    from: string,
    { claim: { owner: to, leaseMs }, token }: Grant,
    timeoutMs: number,
  ): Promise<"adopted" | NotHeld> {
    return call(this, mutexAdopt, this.keys, { from, to, token, leaseMs }, timeoutMs).then(outcomeOf);
  }

  async forceRelease(whose: ForcedRelease, timeoutMs: number): Promise<boolean> {
    const { owner = "", token = "", note = "" } = whose;
    const { inbox } = this;
    const reply = await call(this, mutexForceRelease, this.keys, { owner, token, inbox, note }, timeoutMs);
    return reply.outcome === "released";
  }

  async inspect(owner = "", timeoutMs: number): Promise<State> {
    const reply = await call(this, mutexInspect, this.keys, { owner, most: NAMED_WAITERS }, timeoutMs);
    const [pause = "", ...owners] = reply.owners;
    const [holder = "", ...rest] = owners;
    const leaseLeftMs = reply.restMs < 0 ? Infinity : reply.restMs;
    // The fence is the last token that the holder's claim reserved. Report the first, because most claims serve one
    // lease, which has that token.
    const reserved = reply.outcome === "held" ? (parseOwner(holder)?.amount ?? 1) : 1;
    const token = reply.token === 0 ? undefined : reply.token - reserved + 1;
    return {
      holders: reply.outcome === "held" ? [{ owner: holder, token, leaseLeftMs }] : [],
      token,
      waiterCount: reply.waiters,
      waiters: reply.outcome === "held" ? rest : owners,
      ahead: reply.ahead < 0 ? undefined : reply.ahead,
      ...pauseOf(pause),
    };
  }

  confirmHandOff({ claim, token: first }: Grant, timeoutMs: number): Promise<"extended" | NotHeld> {
    return this.#extend(claim.owner, first + claim.amount - 1, claim.leaseMs, timeoutMs);
  }

  #extend(owner: string, token: number, leaseMs: number, timeoutMs: number): Promise<"extended" | NotHeld> {
    return call(this, mutexExtend, this.keys, { owner, token, leaseMs }, timeoutMs).then(outcomeOf);
  }

  static async #renewAll(
    leases: Parameters<NonNullable<LockProtocol["renewAll"]>>[0],
    timeoutMs: number,
  ): Promise<readonly number[]> {
    const keys: string[] = [];
    const words: (string | number)[] = [];
    let longestMs = 0;
    let caller: MutexProtocol | undefined;
    for (const { protocol: each, grant, leaseMs } of leases) {
      // Only mutexes have this `renewAll`; elections, which extend this class, override it.
      const protocol = each as MutexProtocol;
      caller ??= protocol;
      keys.push(protocol.key, protocol.#fence);
      // Keep the text for the next renewal, because building it takes a fifth of this process's time for a renewal.
      // `join` returns one flat string; a template literal would keep its parts in memory as well.
      if (protocol.#renewed !== grant) {
        protocol.#renewed = grant;
        protocol.#renewedText = [grant.claim.owner, grant.token].join(" ");
      }
      words.push(protocol.#renewedText, leaseMs);
      longestMs = Math.max(longestMs, leaseMs);
    }
    if (caller === undefined) return [];
    const args = { leases: words.join(" "), leaseMs: longestMs };
    const reply = await call(caller, mutexRenew, { "keys...": keys }, args, timeoutMs);
    return reply.refused.map((place) => Number(place) - 1);
  }

  /** Writes a valid lease back to a server that lacks it after a failover. Implements `LockProtocol.reclaim`. */
  protected putBack(
    { claim: { owner }, token }: Grant,
    leaseMs: number,
    timeoutMs: number,
  ): Promise<"reclaimed" | "refused"> {
    const marker = this.store.lineageKey?.(this.key) ?? "";
    const keys = { ...this.keys, marker };
    return call(this, mutexReclaim, keys, { owner, token, leaseMs }, timeoutMs).then(outcomeOf);
  }
}

function outcomeOf<Word extends string>({ outcome }: { readonly outcome: Word }): Word {
  return outcome;
}
