/** The keys and the channel of a Redisson semaphore or latch, and the errors if a key belongs to another object. */
import { type Store, StoreError, UnsupportedError } from "holdfast";
import { call, mappedKeys, show } from "holdfast/internal";
import { countDownLatchChannel, permitLeasesKey, rawName, semaphoreChannel } from "./names.js";
import type { Publish, RedissonScope } from "./scope.js";

/** The keys and the channel of a semaphore or latch. */
export interface CountPlace {
  /** The configuration of its `redisson()`. */
  readonly scope: RedissonScope;
  /** See `LockProtocol.kind`. */
  readonly kind: string;
  /** Runs the scripts. */
  readonly store: Store;
  /** Name, as the caller gave it. */
  readonly name: string;
  /** Name on the server, which is the key of the count. */
  readonly raw: string;
  /** Returns Holdfast's own key that remembers the reply to a request. Redisson does not use it. */
  requestKey(request: string): string;
  /** Arguments of every script: the expected key of the count, and how to notify waiters. */
  readonly publication: { readonly name: string; readonly channel: string; readonly how: Publish };
  /** How long the reply to a request is remembered, in ms: longer than Holdfast retries the request. */
  readonly keepMs: number;
}

/** The keys and the channel of a semaphore. */
export interface PermitsPlace extends CountPlace {
  /** Redisson's key for the leases of permits that expire. */
  readonly timeout: string;
  /** Holdfast's own key for the leases of a plain semaphore: when each holder's lease ends. */
  readonly leases: string;
  /** Holdfast's own key for the grants of a plain semaphore: how many permits each holder has, and its token. */
  readonly grants: string;
}

/** Returns the keys and the channel of a semaphore. @throws TypeError, RangeError  invalid name */
export function permitsPlace(scope: RedissonScope, kind: string, name: string): PermitsPlace {
  const raw = rawName(name, scope, semaphoreChannel, permitLeasesKey);
  const base = baseOf(scope, "redisson-semaphore", raw);
  const place = placeAt({ scope, kind, name, raw, base, channel: semaphoreChannel(raw) });
  return { ...place, timeout: permitLeasesKey(raw), leases: `${base}:leases`, grants: `${base}:grants` };
}

/**
 * Returns the keys and the channel of a latch.
 *
 * @throws TypeError, RangeError  an invalid name, or on a cluster a name with `}`
 */
export function latchPlace(scope: RedissonScope, name: string): CountPlace {
  const raw = rawName(name, scope, countDownLatchChannel);
  const base = baseOf(scope, "redisson-latch", raw);
  const channel = countDownLatchChannel(raw);
  return placeAt({ scope, kind: "redisson.count-down-latch", name, raw, base, channel });
}

/** Prefix of Holdfast's own keys for an object. They are in the cluster slot of the shared key. */
function baseOf({ prefix }: RedissonScope, kind: string, raw: string): string {
  return mappedKeys(prefix, kind, raw).base;
}

function placeAt(facts: {
  readonly scope: RedissonScope;
  readonly kind: string;
  readonly name: string;
  readonly raw: string;
  readonly base: string;
  readonly channel: string;
}): CountPlace {
  const { scope, kind, name, raw, base, channel } = facts;
  return {
    scope,
    kind,
    store: scope.session.store,
    name,
    raw,
    requestKey: (request) => `${base}:request:${request}`,
    publication: { name: raw, channel, how: scope.publish },
    keepMs: scope.latchMs,
  };
}

const SORTS: Readonly<Record<string, string>> = {
  expirable: "belongs to a semaphore whose permits expire",
  plain: "belongs to a plain semaphore",
  strange: "has a value that is not a count",
  mistyped: "has another type, for example that of a lock",
};

/** Returns the error for a key that a script refused without doing anything. `outcome` is the reply of the script. */
export function refused({ name, raw, kind }: CountPlace, outcome: string): StoreError | UnsupportedError {
  if (outcome === "prefixed") {
    return new UnsupportedError(
      name,
      `This client adds its keyPrefix to the key ${show(raw)}, but not to the channel that Redisson derives. Use the nameMapper of redisson instead.`,
    );
  }
  const sort =
    outcome === "mixed"
      ? `belongs to a ${kind.includes("expirable") ? "plain" : "permit-expirable"} semaphore`
      : SORTS[outcome];
  const cause = new Error(`the key ${show(raw)} is not a ${kind}: it ${sort ?? outcome}`);
  return new StoreError(name, { mayHaveRun: false, transient: false, cause });
}

/** Returns a `call` that reports a key of a different type with a clear error. */
export function callAt(place: CountPlace): typeof call {
  return async (...inputs) => {
    try {
      return await call(...inputs);
    } catch (error) {
      if (error instanceof StoreError && String(error.cause).includes("WRONGTYPE")) throw refused(place, "mistyped");
      throw error;
    }
  };
}
