/** Where one lock of Redisson is, and what all kinds of them have in common: who asks, and why it is refused. */

import { interopRedissonExtend, interopRedissonUnlatch } from "../../generated/redisson-scripts.js";
import { StoreError, UnsupportedError } from "../../index.js";
import { type Claim, call, type LockProtocol, type NamedStore, type NotHeld, show } from "../../internal.js";
import { unlockLatchKey } from "./names.js";
import type { RedissonScope } from "./scope.js";

/** One lock. */
export interface Place {
  readonly scope: RedissonScope;
  /** As `LockProtocol.kind`. */
  readonly kind: string;
  /** As the caller calls it. */
  readonly name: string;
  /** As it is called on the server: the main key. */
  readonly raw: string;
}

/** How scripts of that lock are called. */
export function callerOf({ scope, name }: Place): NamedStore {
  return { store: scope.session.store, name };
}

/**
 * The answer of a script, if it is about this lock.
 *
 * @throws StoreError        the key is of something else
 * @throws UnsupportedError  the client puts something before the key, so that what was looked at is nobody's
 */
export function meant<Reply extends { readonly outcome: string }>(
  place: Place,
  answer: Reply,
): Exclude<Reply, { readonly outcome: "mistyped" | "prefixed" }> {
  if (answer.outcome === "mistyped") throw mistyped(place);
  if (answer.outcome === "prefixed") {
    throw new UnsupportedError(
      place.name,
      `This client adds a prefix to the key ${show(place.raw)}, which applies neither to channels nor to the keys that Redisson derives from it: use the nameMapper of redisson instead of a keyPrefix.`,
    );
  }
  // Both outcomes that are left out have thrown.
  return answer as Exclude<Reply, { readonly outcome: "mistyped" | "prefixed" }>;
}

/** The key is of something that does not exclude this kind, and is not excluded by it: nothing was done. */
function mistyped({ kind, name, raw }: Place): StoreError {
  const cause = new Error(`its key ${show(raw)} is not that of ${kind}`);
  return new StoreError(name, { mayHaveRun: false, transient: false, cause });
}

/** Begins the lease of a holder anew that is a field of the hash, and nothing else. */
export function extendsHash(place: Place): LockProtocol["extend"] {
  const keys = { lock: place.raw };
  return async ({ claim: { owner } }, leaseMs, timeoutMs): Promise<"extended" | NotHeld> =>
    (await call(callerOf(place), interopRedissonExtend, keys, { owner, leaseMs }, timeoutMs)).outcome;
}

/** As `LockProtocol.confirm`: where replicas have to know of a grant, its lease is begun anew once they do. */
export function confirmBy({ scope }: Place, extend: LockProtocol["extend"]): LockProtocol["confirm"] {
  if (scope.session.store.confirmsGrants !== true) return undefined;
  return (granted, timeoutMs) => extend(granted, granted.claim.leaseMs, timeoutMs);
}

/** The key under which the release of a claim remembers that it was done. */
export function latchOf({ scope, raw }: Place, claim: Claim): string {
  return unlockLatchKey(raw, scope.requestIdOf(claim.number));
}

/** Its answer has come, so that nobody will ask again. Nobody waits for this: what is left over expires by itself. */
export function unlatch(place: Place, latch: string): void {
  call(callerOf(place), interopRedissonUnlatch, { latch }, {}, place.scope.session.commandTimeoutMs).catch(() => {});
}

/** What a reply to `inspect` says of the end of a lease. */
export function leftMs(restMs: number): number {
  return restMs < 0 ? Infinity : restMs;
}
