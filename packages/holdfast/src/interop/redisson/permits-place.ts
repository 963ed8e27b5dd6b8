/** Where a semaphore or latch of Redisson is: its keys and its channel, and what refuses a name that means something else. */
import { type Store, StoreError, UnsupportedError } from "../../index.js";
import { call, mappedKeys, show } from "../../internal.js";
import { countDownLatchChannel, permitLeasesKey, rawName, semaphoreChannel } from "./names.js";
import type { Publish, RedissonScope } from "./scope.js";

/** See the file header. */
export interface CountPlace {
  readonly scope: RedissonScope;
  /** As `LockProtocol.kind`. */
  readonly kind: string;
  readonly store: Store;
  /** As the caller gave it. */
  readonly name: string;
  /** As it is called on the server: the key of the count. */
  readonly raw: string;
  /** A key of our own, which Redisson does not look at: the answer that a request had. */
  requestKey(request: string): string;
  /** What every script takes: the key of the count as it must arrive there, and how to tell those who wait. */
  readonly tell: { readonly name: string; readonly channel: string; readonly how: Publish };
  /** How long the answer to a request is remembered, in ms: longer than anybody sends it again. */
  readonly keepMs: number;
}

/** Where a semaphore is. */
export interface PermitsPlace extends CountPlace {
  /** Redisson's key for the leases of permits that expire. */
  readonly timeout: string;
  /** Keys of our own: who has which permits of a plain semaphore, and until when. */
  readonly leases: string;
  readonly grants: string;
}

/** The place of the semaphore of that name. @throws TypeError, RangeError  a wrong name */
export function permitsPlace(scope: RedissonScope, kind: string, name: string): PermitsPlace {
  const raw = rawName(name, scope, semaphoreChannel, permitLeasesKey);
  const base = baseOf(scope, "redisson-semaphore", raw);
  const place = placeAt({ scope, kind, name, raw, base, channel: semaphoreChannel(raw) });
  return { ...place, timeout: permitLeasesKey(raw), leases: `${base}:leases`, grants: `${base}:grants` };
}

/** The place of the latch of that name. @throws TypeError, RangeError  a wrong name, such as one with a closing brace on a cluster */
export function latchPlace(scope: RedissonScope, name: string): CountPlace {
  const raw = rawName(name, scope, countDownLatchChannel);
  const base = baseOf(scope, "redisson-latch", raw);
  const channel = countDownLatchChannel(raw);
  return placeAt({ scope, kind: "redisson.count-down-latch", name, raw, base, channel });
}

/** What keys of our own begin with: in the slot of the key that is shared. */
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
    tell: { name: raw, channel, how: scope.publish },
    keepMs: scope.latchMs,
  };
}

const SORTS: Readonly<Record<string, string>> = {
  expirable: "belongs to a semaphore whose permits expire",
  mixed: "belongs to a semaphore of the other sort",
  plain: "belongs to a plain semaphore",
  strange: "holds a text that is no count",
  mistyped: "is of another type, as that of a lock is",
};

/** The error of a name that means something else to somebody: nothing was done. */
export function refused({ name, raw, kind }: CountPlace, outcome: string): StoreError | UnsupportedError {
  if (outcome === "prefixed") {
    return new UnsupportedError(
      name,
      `This client adds a prefix to the key ${show(raw)}, which does not apply to the channel that Redisson derives from it: use the nameMapper of redisson instead of a keyPrefix.`,
    );
  }
  const cause = new Error(`its key ${show(raw)} ${SORTS[outcome] ?? outcome}, and is none of a ${kind}`);
  return new StoreError(name, { mayHaveRun: false, transient: false, cause });
}

/** As core's `call`, with a clear error where a key is of another type. */
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
