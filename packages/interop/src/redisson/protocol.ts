/** The protocol of RLock, FencedLock and SpinLock, which use the same hash. Each operation is one script call. */

import { UnsupportedError } from "holdfast";
import {
  type AcquireReply,
  type Claim,
  call,
  type Grant,
  type LockProtocol,
  type NotHeld,
  type State,
} from "holdfast/internal";
import {
  interopRedissonAcquire,
  interopRedissonForceRelease,
  interopRedissonInspect,
  interopRedissonLeave,
  interopRedissonRelease,
} from "../generated/redisson.js";
import { fencedTokenKey, lockChannel } from "./names.js";
import { callerOf, confirmBy, extendsHash, latchOf, leftMs, meant, type Place, unlatch } from "./place.js";

/**
 * Returns the protocol of an RLock, FencedLock or SpinLock.
 *
 * @param isFenced  whether grants take their tokens from Redisson's counter
 */
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
      // The last token may not belong to this holder, because an RLock with the same name does not change the counter.
      const holders = reply.owners.map((owner) => ({ owner, token: undefined, leaseLeftMs }));
      return { holders, token, waiterCount: 0, waiters: [], ahead: undefined };
    },
  };
}

/** Returns the error for adopting a lease. Its owner id belongs to one process, so it cannot move to another one. */
export function cannotMove({ kind, name }: Place): UnsupportedError {
  return new UnsupportedError(name, `A lease of ${kind} stays with the process that acquired it.`);
}

/**
 * Returns the error for a force-release by token only. The counter of a FencedLock shows the last fenced grant, but an
 * `RLock`, which does not change the counter, may have been granted since.
 */
function saysTooLittle({ kind, name }: Place): UnsupportedError {
  return new UnsupportedError(
    name,
    `Nothing was released: a token alone does not identify the holder of a ${kind}. Pass { owner, token } to forceRelease.`,
  );
}

/** Returns the error for a force-release by token, because the server stores tokens only for a FencedLock. */
export function keepsNoToken({ kind, name }: Place): UnsupportedError {
  return new UnsupportedError(
    name,
    `Nothing was released: Redisson stores no token for a ${kind}. Pass { owner } to forceRelease.`,
  );
}
