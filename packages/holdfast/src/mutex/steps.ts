/** The atomic steps of a mutex: each one script call, with the keys of one name. */
import { call } from "../core/call.js";
import { parseOwner } from "../core/owner.js";
import type { State, Steps } from "../core/steps.js";
import type { Store } from "../core/store.js";
import {
  mutexAcquire,
  mutexAdopt,
  mutexExtend,
  mutexForceRelease,
  mutexInspect,
  mutexLeave,
  mutexReclaim,
  mutexRelease,
} from "../generated/scripts.js";

/** How many waiters `inspect` names. */
const NAMED_WAITERS = 100;

/** How long the fence outlives a lease; the other scripts say it for themselves. */
const FENCE_MS = 600_000;

/** What the steps of one mutex need to know. */
export interface MutexPlace {
  readonly store: Store;
  readonly name: string;
  /** The mapped lock key, if the caller gave one. */
  readonly key: string | undefined;
  /** Where the lock is, and what its other keys begin with. */
  readonly keys: { readonly base: string; readonly lock: string };
  /** What a client id is appended to for its channel. */
  readonly inbox: string;
}

/** The steps of a mutex, and its keys for scripts that work on several. */
export interface MutexSteps extends Steps {
  readonly keys: { readonly base: string; readonly lock: string; readonly fence: string; readonly queue: string };
  readonly inbox: string;
}

/** The steps of the mutex at `place`. */
export function mutexSteps({ store, name, key, keys, inbox }: MutexPlace): MutexSteps {
  const caller = { store, lockName: name };
  const lock = keys.lock;
  const fence = `${keys.base}:fence`;
  const queue = `${keys.base}:queue`;
  const marker = store.lineageKey?.(lock);

  return {
    kind: "mutex",
    name,
    key: lock,
    inbox,
    keys: { base: keys.base, lock, fence, queue },
    exported: key === undefined ? {} : { key },

    acquire({ owner, leaseMs, amount }, enqueue, timeoutMs) {
      const args = { owner, leaseMs, fenceMs: leaseMs + FENCE_MS, block: amount, enqueue: enqueue ? 1 : 0, inbox };
      return call(caller, mutexAcquire, { lock, fence, queue }, args, timeoutMs);
    },

    async extend({ claim: { owner }, token }, leaseMs, timeoutMs) {
      return (await call(caller, mutexExtend, { lock, fence }, { owner, token, leaseMs }, timeoutMs)).outcome;
    },

    ...(store.confirmsGrants === true &&
      ({
        async confirm({ claim: { owner, leaseMs, amount }, token: first }, timeoutMs) {
          const args = { owner, token: first + amount - 1, leaseMs };
          return (await call(caller, mutexExtend, { lock, fence }, args, timeoutMs)).outcome;
        },
      } satisfies Pick<Steps, "confirm">)),

    ...(marker !== undefined &&
      ({
        async reclaim({ claim: { owner }, token }, leaseMs, timeoutMs) {
          const args = { owner, token, leaseMs };
          return (await call(caller, mutexReclaim, { lock, fence, queue, marker }, args, timeoutMs)).outcome;
        },
      } satisfies Pick<Steps, "reclaim">)),

    async release({ claim: { owner }, token }, timeoutMs) {
      return (await call(caller, mutexRelease, { lock, fence, queue }, { owner, token, inbox }, timeoutMs)).outcome;
    },

    async leave({ owner }, timeoutMs) {
      await call(caller, mutexLeave, { lock, fence, queue }, { owner, inbox }, timeoutMs);
    },

    async adopt(from, { claim: { owner: to, leaseMs }, token }, timeoutMs) {
      return (await call(caller, mutexAdopt, { lock, fence }, { from, to, token, leaseMs }, timeoutMs)).outcome;
    },

    async forceRelease({ owner = "", token = "" }, timeoutMs) {
      const reply = await call(caller, mutexForceRelease, { lock, fence, queue }, { owner, token, inbox }, timeoutMs);
      return reply.outcome === "released";
    },

    async inspect(owner = "", timeoutMs): Promise<State> {
      const args = { owner, most: NAMED_WAITERS };
      const reply = await call(caller, mutexInspect, { lock, fence, queue }, args, timeoutMs);
      const [holder = "", ...rest] = reply.owners;
      const leaseLeftMs = reply.restMs < 0 ? Infinity : reply.restMs;
      // The fence stands at the last token that the holder's claim has reserved; most serve one lease, by the first.
      const reserved = reply.outcome === "held" ? (parseOwner(holder)?.amount ?? 1) : 1;
      const token = reply.token === 0 ? undefined : reply.token - reserved + 1;
      return {
        holders: reply.outcome === "held" ? [{ owner: holder, token, leaseLeftMs }] : [],
        token,
        waiterCount: reply.waiters,
        waiters: reply.outcome === "held" ? rest : reply.owners,
        ahead: reply.ahead < 0 ? undefined : reply.ahead,
      };
    },
  };
}
