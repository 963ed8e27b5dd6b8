/** The protocol of RLock, FencedLock and SpinLock, which are one hash: each one script call. */

import {
  interopRedissonAcquire,
  interopRedissonForceRelease,
  interopRedissonInspect,
  interopRedissonLeave,
  interopRedissonRelease,
} from "../../generated/redisson-scripts.js";
import { UnsupportedError } from "../../index.js";
import {
  type AcquireReply,
  type Claim,
  call,
  type Grant,
  type LockProtocol,
  type NotHeld,
  type State,
} from "../../internal.js";
import { fencedTokenKey, lockChannel } from "./names.js";
import { callerOf, confirmBy, extendsHash, latchOf, leftMs, meant, type Place, unlatch } from "./place.js";

/** See the file header. @param isFenced  whether grants take their tokens from Redisson's own counter */
export function hashProtocol(place: Place, isFenced: boolean): LockProtocol {
  const { scope, kind, name, raw } = place;
  const caller = callerOf(place);
  const how = scope.publish;
  const extend = extendsHash(place);
  const channel = lockChannel(raw);
  const fence = fencedTokenKey(raw);

  return {
    kind,
    name,
    key: raw,
    exported: undefined,

    async acquire({ owner, leaseMs }: Claim, _enqueue: boolean, timeoutMs: number): Promise<AcquireReply> {
      const args = { name: raw, owner, leaseMs, fenced: isFenced ? 1 : 0 };
      return meant(place, await call(caller, interopRedissonAcquire, { lock: raw, fence }, args, timeoutMs));
    },

    extend,
    confirm: confirmBy(place, extend),

    async release({ claim }: Grant, timeoutMs): Promise<"released" | NotHeld> {
      const latch = latchOf(place, claim);
      const args = { owner: claim.owner, channel, how, latchMs: scope.latchMs };
      const { outcome } = await call(caller, interopRedissonRelease, { lock: raw, latch }, args, timeoutMs);
      if (outcome === "released") unlatch(place, latch);
      return outcome;
    },

    async leave({ owner }: Claim, timeoutMs): Promise<void> {
      await call(caller, interopRedissonLeave, { lock: raw }, { owner, channel, how }, timeoutMs);
    },

    adopt: () => Promise.reject(cannotMove(place)),

    async forceRelease({ owner = "", token = "" }, timeoutMs): Promise<boolean> {
      if (token !== "" && !isFenced) throw keepsNoToken(place);
      if (owner === "") throw saysTooLittle(place);
      const args = { name: raw, owner, token, channel, how };
      const reply = await call(caller, interopRedissonForceRelease, { lock: raw, fence }, args, timeoutMs);
      return meant(place, reply).outcome === "released";
    },

    async inspect(_owner, timeoutMs): Promise<State> {
      const args = { name: raw };
      const reply = meant(place, await call(caller, interopRedissonInspect, { lock: raw, fence }, args, timeoutMs));
      const token = isFenced && reply.token > 0 ? reply.token : undefined;
      const leaseLeftMs = leftMs(reply.restMs);
      // The last token need not be this holder's: an RLock of the same name leaves the counter as it is.
      const holders = reply.owners.map((owner) => ({ owner, token: undefined, leaseLeftMs }));
      return { holders, token, waiterCount: 0, waiters: [], ahead: undefined };
    },
  };
}

/** Its lease cannot go to another process: the owner id says whose it is. */
export function cannotMove({ kind, name }: Place): UnsupportedError {
  return new UnsupportedError(name, `A lease of ${kind} stays with the process that acquired it.`);
}

/** The counter of a FencedLock is that of the last fenced grant, and an `RLock` that holds since then leaves it as it is. */
function saysTooLittle({ kind, name }: Place): UnsupportedError {
  return new UnsupportedError(name, `A token of ${kind} does not say who holds the lock now: pass its owner as well.`);
}

/** Only the counter of a FencedLock is kept on the server. */
export function keepsNoToken({ kind, name }: Place): UnsupportedError {
  return new UnsupportedError(name, `The server keeps no token for ${kind}: pass its owner.`);
}
