/**
 * Reports locks that cannot be read, for one of these reasons:
 *
 * - a key of the lock has a different Redis type than Holdfast expects, for example because another program wrote it
 * - the Redis user is not allowed to read a key of the lock
 * - too few servers replied to tell whether a Redlock is held
 *
 * All other locks are listed as usual.
 */

import { call } from "../core/call.js";
import { QuorumError, StoreError } from "../core/errors.js";
import { adminWaiters } from "../generated/admin.js";
import { UNDECIDED } from "../redlock/decision.js";
import type { LockEntry, LockKind } from "./entry.js";
import { keysOf, type Trace } from "./key-names.js";
import { isMistyped } from "./mistyped.js";
import type { Place } from "./place.js";

/** How to describe each server's answer about a Redlock that may be held. */
const SAID: Readonly<Record<string, string>> = {
  held: "has a holder",
  "not-held": "is free",
  done: "replied",
  none: "did not reply",
};

/** Returns the entry of an unreadable lock. @param keys  the keys that have, or may have, an unexpected type */
export function brokenEntry(
  { kind, name, key }: Pick<Trace, "kind" | "name" | "key">,
  keys: readonly string[],
): LockEntry {
  return {
    kind,
    name,
    key,
    state: "broken",
    mode: undefined,
    token: undefined,
    holders: [],
    waiterCount: 0,
    waiters: [],
    permits: undefined,
    pause: undefined,
    label: undefined,
    conditions: [],
    leader: undefined,
    count: undefined,
    barrier: undefined,
    unreadable: { keys },
  };
}

/**
 * Returns the entry of a lock that cannot be read: either a server refused the request, for example because the Redis
 * user lacks permission, or too few servers replied to tell whether a Redlock is held. Returns undefined for any other
 * error, because a list cannot continue without a reply.
 *
 * @param isFound  whether a list has found a key of the lock. Otherwise, a Redlock without a majority gets an entry
 *                 only if a server reports a holder
 */
export function refusedEntry(
  whose: Pick<Trace, "kind" | "name" | "key">,
  error: unknown,
  isFound: boolean,
): LockEntry | undefined {
  if (!(error instanceof StoreError)) return undefined;
  if (error instanceof QuorumError && (isFound || error.answers.some(({ answer }) => answer === "held"))) {
    const said = error.answers.map(({ server, answer, error: why }) => {
      return `server ${server} ${SAID[answer] ?? `failed (${firstLine(why)})`}`;
    });
    const reason = `${UNDECIDED}: ${said.join(", ")}`;
    return { ...brokenEntry(whose, []), unreadable: { keys: [], reason, mayBeHeld: true } };
  }
  if (error instanceof QuorumError || error.transient) return undefined;
  return { ...brokenEntry(whose, []), unreadable: { keys: [], reason: firstLine(error) } };
}

/** Returns the first line of the server's reply. */
function firstLine(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error.message) : error;
  const text = cause instanceof Error ? cause.message : String(cause);
  return text.split("\n")[0] ?? "";
}

type Suffixes = readonly string[];

/**
 * The suffixes of the keys that are sorted sets, and of those that are not. The first key of a lock, which has no
 * suffix, is not a sorted set.
 */
const SUFFIXES: Readonly<Record<LockKind, { readonly sorted: Suffixes; readonly others: Suffixes }>> = {
  mutex: { sorted: [":queue"], others: [":fence", ":handed", ":pause"] },
  election: { sorted: [":queue"], others: [":fence", ":handed", ":pause", ":value"] },
  semaphore: { sorted: [":queue", ":holders", ":slots"], others: [":fence", ":pause"] },
  "read-write-lock": { sorted: [":queue", ":holders", ":slots"], others: [":fence", ":pause"] },
  "count-down-latch": { sorted: [":waiters", ":counted"], others: [] },
  barrier: { sorted: [":arrived", ":leases", ":ended"], others: [] },
  redlock: { sorted: [], others: [":fence"] },
};

/**
 * Returns the keys of an unreadable lock that have an unexpected type.
 *
 * It reads each key as a sorted set, because that needs no more permissions than inspecting a lock. If the server
 * refuses a key that should have another type, this shows only that the key exists. So if no key is certain to be
 * wrong, it returns all such keys, because one of them is wrong.
 *
 * @throws StoreError
 */
export async function mistypedKeys(
  place: Place,
  whose: Pick<Trace, "kind" | "name" | "key">,
): Promise<readonly string[]> {
  const { lock, base } = keysOf(place.prefix, whose);
  const { sorted, others } = SUFFIXES[whose.kind];
  const [wrong, rest] = await Promise.all([
    asSortedSets(
      place,
      sorted.map((suffix) => base + suffix),
    ),
    asSortedSets(place, [lock, ...others.map((suffix) => base + suffix)]),
  ]);
  const certain = [...wrong.refused, ...rest.filled];
  return certain.length > 0 ? certain : rest.refused;
}

interface AsSortedSets {
  readonly refused: readonly string[];
  readonly filled: readonly string[];
}

async function asSortedSets({ stores, timeoutMs }: Place, keys: readonly string[]): Promise<AsSortedSets> {
  const refused: string[] = [];
  const filled: string[] = [];
  await Promise.all(
    keys.map(async (queue) => {
      const reads = await Promise.allSettled(
        stores.map((store) => call({ store, name: queue }, adminWaiters, { queue }, { most: 1 }, timeoutMs)),
      );
      const [first] = reads;
      if (reads.some((one) => one.status === "rejected" && isMistyped(one.reason))) refused.push(queue);
      else if (reads.some((one) => one.status === "fulfilled" && one.value.texts.length > 0)) filled.push(queue);
      else if (first?.status === "rejected" && reads.every((one) => one.status === "rejected")) throw first.reason;
    }),
  );
  const inOrder = (some: readonly string[]): string[] => keys.filter((key) => some.includes(key));
  return { refused: inOrder(refused), filled: inOrder(filled) };
}
