/** Where the notes beside locks are, on one server or on several, and how they are read. */
import { type Holdfast, QuorumError, type Store } from "../index.js";
import {
  anyInternalsOf,
  checkKey,
  checkName,
  type Internals,
  type LockKeys,
  lockKeys,
  mappedKeys,
} from "../internal.js";

/** Where the note of a lock is, and how it is asked for. */
export interface Place {
  readonly internals: Internals;
  readonly name: string;
  readonly marker: string;
  readonly stores: readonly Store[];
}

/** @throws TypeError, RangeError  a wrong name or key. @throws ClosedError */
export function placeOf(holdfast: Holdfast, name: string, key: string | undefined): Place {
  const found = anyInternalsOf(holdfast);
  checkName(name);
  if (key !== undefined) checkKey(key);
  found.session.assertOpen(name);
  const stores = found.servers ?? [found.session.store];
  return { internals: found, name, marker: keysOf(found.prefix, "period-marker", name, key).base, stores };
}

/** Keys of that kind for a name, or for the key that stands for it. */
export function keysOf(prefix: string, kind: string, name: string, key: string | undefined): LockKeys {
  return key === undefined ? lockKeys(prefix, kind, name) : mappedKeys(prefix, kind, key);
}

/** How many servers must agree. */
export function majorityOf({ stores }: Place): number {
  return Math.floor(stores.length / 2) + 1;
}

/** Asks the one server; or all of several, of which a majority must answer. @throws StoreError, QuorumError */
export async function onMajority<Answer>(
  place: Place,
  ask: (store: Store) => Promise<Answer>,
): Promise<readonly Answer[]> {
  const [only, ...others] = place.stores;
  if (only !== undefined && others.length === 0) return [await ask(only)];
  const ends = await Promise.allSettled(place.stores.map(ask));
  const answers = ends.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  if (answers.length >= majorityOf(place)) return answers;
  throw new QuorumError(place.name, {
    answers: ends.map((one, server) => {
      const error: unknown = one.status === "rejected" ? one.reason : undefined;
      return { server, answer: error === undefined ? "done" : "error", leaseLeftMs: undefined, error };
    }),
    mayHaveRun: true,
    transient: true,
  });
}
