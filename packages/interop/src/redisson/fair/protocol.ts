/** The protocol of a FairLock. Each operation is one script call. */

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
  interopRedissonFairAcquire,
  interopRedissonFairForceRelease,
  interopRedissonFairInspect,
  interopRedissonFairLeave,
  interopRedissonFairRelease,
} from "../../generated/redisson.js";
import { fairQueueKey, fairTimeoutKey, lockChannel } from "../names.js";
import { callerOf, confirmBy, extendsHash, latchOf, leftMs, meant, type Place, unlatch } from "../place.js";
import { cannotMove, keepsNoToken } from "../protocol.js";

/** Maximum number of waiters that `inspect` returns. */
const NAMED_WAITERS = 100;

/**
 * Returns the protocol of a FairLock.
 *
 * @param waitMs  how long a claim keeps its place after the deadline of the waiter before it, in ms
 */
export function fairProtocol(place: Place, waitMs: number): LockProtocol {
  const { scope, kind, name, raw } = place;
  const caller = callerOf(place);
  const how = scope.publish;
  const extend = extendsHash(place);
  const channel = lockChannel(raw);
  const keys = { lock: raw, queue: fairQueueKey(raw), timeout: fairTimeoutKey(raw) };

  return {
    kind,
    name,
    key: raw,
    keepsPlaces: true,
    exported: undefined,

    async acquire({ owner, leaseMs }: Claim, enqueue: boolean, timeoutMs: number): Promise<AcquireReply> {
      const args = { name: raw, owner, leaseMs, waitMs, enqueue: enqueue ? 1 : 0 };
      return meant(place, await call(caller, interopRedissonFairAcquire, keys, args, timeoutMs));
    },

    extend,
    confirm: confirmBy(place, extend),

    async release({ claim }: Grant, timeoutMs): Promise<"released" | NotHeld> {
      const latch = latchOf(place, claim);
      const args = { owner: claim.owner, channel, how, latchMs: scope.latchMs };
      const { outcome } = await call(caller, interopRedissonFairRelease, { ...keys, latch }, args, timeoutMs);
      if (outcome === "released") unlatch(place, latch);
      return outcome;
    },

    async leave({ owner }: Claim, timeoutMs): Promise<void> {
      await call(caller, interopRedissonFairLeave, keys, { owner, waitMs, channel, how }, timeoutMs);
    },

    adopt: () => Promise.reject(cannotMove(place)),

    async forceRelease({ owner = "", token }, timeoutMs): Promise<boolean> {
      if (token !== undefined) throw keepsNoToken(place);
      const args = { name: raw, owner, channel, how };
      const reply = await call(caller, interopRedissonFairForceRelease, keys, args, timeoutMs);
      return meant(place, reply).outcome === "released";
    },

    async inspect(owner, timeoutMs): Promise<State> {
      const { lock, queue } = keys;
      const args = { name: raw, most: NAMED_WAITERS };
      const reply = meant(place, await call(caller, interopRedissonFairInspect, { lock, queue }, args, timeoutMs));
      const isHeld = reply.outcome === "held";
      const waiters = isHeld ? reply.names.slice(1) : reply.names;
      const [holder] = isHeld ? reply.names : [];
      const standing = owner === undefined ? -1 : waiters.indexOf(owner);
      return {
        holders: holder === undefined ? [] : [{ owner: holder, token: undefined, leaseLeftMs: leftMs(reply.restMs) }],
        token: undefined,
        waiterCount: reply.waiters,
        waiters,
        ahead: standing < 0 ? undefined : standing,
      };
    },
  };
}
