/** The name and key of one Redisson lock, and helpers that all kinds of these locks share. */

import { StoreError, UnsupportedError } from "holdfast";
import { type Claim, call, type LockProtocol, type NamedStore, type NotHeld, show } from "holdfast/internal";
import { interopRedissonExtend, interopRedissonUnlatch } from "../generated/redisson.js";
import { unlockLatchKey } from "./names.js";
import type { RedissonScope } from "./scope.js";

/** The name and key of one lock. */
export interface Place {
  /** The configuration of its `redisson()`. */
  readonly scope: RedissonScope;
  /** See `LockProtocol.kind`. */
  readonly kind: string;
  /** Name, as the caller gave it. */
  readonly name: string;
  /** Name on the server, which is the main key. */
  readonly raw: string;
}

/** Returns the store and the lock name that `call` needs. */
export function callerOf({ scope, name }: Place): NamedStore {
  return { store: scope.session.store, name };
}

/**
 * Returns the reply of a script, unless the script refused the key.
 *
 * @throws StoreError        the key belongs to an object of a different type
 * @throws UnsupportedError  the client adds a prefix to keys, so the script looked at a key that Redisson does not use
 */
export function meant<Reply extends { readonly outcome: string }>(
  place: Place,
  answer: Reply,
): Exclude<Reply, { readonly outcome: "mistyped" | "prefixed" }> {
  if (answer.outcome === "mistyped") throw mistyped(place);
  if (answer.outcome === "prefixed") {
    throw new UnsupportedError(
      place.name,
      `This client adds its keyPrefix to the key ${show(place.raw)}, but not to channels, nor to the keys that Redisson derives. Use the nameMapper of redisson instead.`,
    );
  }
  // The cast is safe because both excluded outcomes have thrown.
  return answer as Exclude<Reply, { readonly outcome: "mistyped" | "prefixed" }>;
}

/** Returns the error for a key that belongs to an object of a different type. The script did nothing. */
function mistyped({ kind, name, raw }: Place): StoreError {
  const cause = new Error(
    `the key ${show(raw)} is not a ${kind}: it has another type, or belongs to another kind of lock`,
  );
  return new StoreError(name, { mayHaveRun: false, transient: false, cause });
}

/** Returns an `extend` for locks whose holder is only a field of the hash. */
export function extendsHash(place: Place): LockProtocol["extend"] {
  const keys = { lock: place.raw };
  return async ({ claim: { owner } }, leaseMs, timeoutMs): Promise<"extended" | NotHeld> =>
    (await call(callerOf(place), interopRedissonExtend, keys, { owner, leaseMs }, timeoutMs)).outcome;
}

/**
 * Returns `LockProtocol.confirm`, which renews the lease so that replicas acknowledge the grant. Undefined if the store
 * does not confirm grants.
 */
export function confirmBy({ scope }: Place, extend: LockProtocol["extend"]): LockProtocol["confirm"] {
  if (scope.session.store.confirmsGrants !== true) return undefined;
  return (granted, timeoutMs) => extend(granted, granted.claim.leaseMs, timeoutMs);
}

/** Returns the key that remembers that the release of a claim was executed. */
export function latchOf({ scope, raw }: Place, claim: Claim): string {
  return unlockLatchKey(raw, scope.requestIdOf(claim.number));
}

/**
 * Deletes the latch of a release after its reply has arrived. Runs in the background and ignores errors, because the
 * latch expires anyway.
 */
export function unlatch(place: Place, latch: string): void {
  call(callerOf(place), interopRedissonUnlatch, { latch }, {}, place.scope.session.commandTimeoutMs).catch(() => {});
}

/** Converts the remaining lease time from a script: -1 becomes Infinity. */
export function leftMs(restMs: number): number {
  return restMs < 0 ? Infinity : restMs;
}
