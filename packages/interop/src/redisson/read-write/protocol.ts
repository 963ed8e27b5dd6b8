/** The protocols of the two sides of a ReadWriteLock. Each operation is one script call. */

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
  interopRedissonReadWriteDowngrade,
  interopRedissonReadWriteInspect,
  interopRedissonReadWriteReadAcquire,
  interopRedissonReadWriteReadExtend,
  interopRedissonReadWriteReadLeave,
  interopRedissonReadWriteReadRelease,
  interopRedissonReadWriteWriteAcquire,
  interopRedissonReadWriteWriteLeave,
  interopRedissonReadWriteWriteRelease,
} from "../../generated/redisson.js";
import { readHoldKey, readWriteChannel, suffixBase } from "../names.js";
import { callerOf, confirmBy, extendsHash, latchOf, leftMs, meant, type Place, unlatch } from "../place.js";
import { cannotMove, keepsNoToken } from "../protocol.js";

/** Suffix of the owner id of a writer. */
export const WRITER: string = ":write";

/** Returns the part of the protocol that both sides share. */
function sharedProtocol(place: Place): Pick<LockProtocol, "kind" | "name" | "key" | "exported" | "adopt" | "inspect"> {
  const { kind, name, raw } = place;
  return {
    kind,
    name,
    key: raw,
    exported: undefined,
    adopt: () => Promise.reject(cannotMove(place)),

    async inspect(_owner, timeoutMs): Promise<State> {
      const args = { name: raw };
      const answer = await call(callerOf(place), interopRedissonReadWriteInspect, { lock: raw }, args, timeoutMs);
      const reply = meant(place, answer);
      const leaseLeftMs = leftMs(reply.restMs);
      const holders = reply.owners.map((owner) => ({ owner, token: undefined, leaseLeftMs }));
      return { holders, token: undefined, waiterCount: 0, waiters: [], ahead: undefined };
    },
  };
}

/** Returns the protocol of the read side, which many claims can hold at a time. */
export function readProtocol(place: Place): LockProtocol {
  const { scope, raw } = place;
  const caller = callerOf(place);
  const how = scope.publish;
  const channel = readWriteChannel(raw);
  const holdBase = suffixBase(raw);
  const keysOf = (owner: string): { lock: string; hold: string } => ({ lock: raw, hold: readHoldKey(raw, owner, 1) });
  const extend: LockProtocol["extend"] = async ({ claim: { owner } }, leaseMs, timeoutMs) =>
    (await call(caller, interopRedissonReadWriteReadExtend, keysOf(owner), { owner, leaseMs }, timeoutMs)).outcome;

  return {
    ...sharedProtocol(place),
    mode: "read",

    async acquire({ owner, leaseMs }: Claim, _enqueue: boolean, timeoutMs: number): Promise<AcquireReply> {
      const args = { name: raw, owner, leaseMs };
      const answer = await call(caller, interopRedissonReadWriteReadAcquire, keysOf(owner), args, timeoutMs);
      return meant(place, answer);
    },

    extend,
    confirm: confirmBy(place, extend),

    async release({ claim }: Grant, timeoutMs): Promise<"released" | NotHeld> {
      const latch = latchOf(place, claim);
      const args = { owner: claim.owner, holdBase, channel, how, latchMs: scope.latchMs };
      const { outcome } = await call(
        caller,
        interopRedissonReadWriteReadRelease,
        { lock: raw, latch },
        args,
        timeoutMs,
      );
      if (outcome === "released") unlatch(place, latch);
      return outcome;
    },

    async leave({ owner }: Claim, timeoutMs): Promise<void> {
      const args = { name: raw, owner, holdBase, channel, how };
      await call(caller, interopRedissonReadWriteReadLeave, { lock: raw }, args, timeoutMs);
    },

    async forceRelease({ owner = "", token }, timeoutMs): Promise<boolean> {
      if (token !== undefined) throw keepsNoToken(place);
      const args = { name: raw, owner, holdBase, channel, how };
      const reply = await call(caller, interopRedissonReadWriteReadLeave, { lock: raw }, args, timeoutMs);
      return meant(place, reply).outcome === "released";
    },
  };
}

/**
 * Returns the protocol of the write side, which one claim can hold at a time. Its owner ids must end in `WRITER`.
 */
export function writeProtocol(place: Place): LockProtocol {
  const { scope, raw } = place;
  const caller = callerOf(place);
  const how = scope.publish;
  const channel = readWriteChannel(raw);
  const extend = extendsHash(place);

  return {
    ...sharedProtocol(place),
    mode: "write",

    async acquire({ owner, leaseMs }: Claim, _enqueue: boolean, timeoutMs: number): Promise<AcquireReply> {
      const args = { name: raw, owner, leaseMs };
      const answer = await call(caller, interopRedissonReadWriteWriteAcquire, { lock: raw }, args, timeoutMs);
      return meant(place, answer);
    },

    extend,
    confirm: confirmBy(place, extend),

    async release({ claim }: Grant, timeoutMs): Promise<"released" | NotHeld> {
      const latch = latchOf(place, claim);
      const args = { owner: claim.owner, channel, how, latchMs: scope.latchMs };
      const keys = { lock: raw, latch };
      const { outcome } = await call(caller, interopRedissonReadWriteWriteRelease, keys, args, timeoutMs);
      if (outcome === "released") unlatch(place, latch);
      return outcome;
    },

    async leave({ owner }: Claim, timeoutMs): Promise<void> {
      const args = { name: raw, owner, channel, how };
      await call(caller, interopRedissonReadWriteWriteLeave, { lock: raw }, args, timeoutMs);
    },

    async forceRelease({ owner = "", token }, timeoutMs): Promise<boolean> {
      if (token !== undefined) throw keepsNoToken(place);
      const args = { name: raw, owner, channel, how };
      const reply = await call(caller, interopRedissonReadWriteWriteLeave, { lock: raw }, args, timeoutMs);
      return meant(place, reply).outcome === "released";
    },
  };
}

/** Turns a write hold into a read hold in one step. @throws StoreError  outcome unknown; sending it again is safe */
export async function downgrade(
  place: Place,
  writer: Claim,
  reader: Claim,
  timeoutMs: number,
): Promise<"downgraded" | "forgotten"> {
  const { scope, raw } = place;
  const keys = { lock: raw, hold: readHoldKey(raw, reader.owner, 1) };
  const args = {
    writer: writer.owner,
    owner: reader.owner,
    leaseMs: reader.leaseMs,
    channel: readWriteChannel(raw),
    how: scope.publish,
  };
  return (await call(callerOf(place), interopRedissonReadWriteDowngrade, keys, args, timeoutMs)).outcome;
}
