/** Finds the lock that a page names, using only the public API. */
import type { Holdfast, Inspection, Lock } from "holdfast";
import { LOCK_KINDS, type LockEntry, type LockKind } from "holdfast/admin";
import type { LockPlace } from "./place.js";
import { badRequest } from "./problem.js";
import { isWrongType } from "./trouble.js";

/** The number of permits for a semaphore that is only inspected or released; the value has no effect then. */
const ANY_NUMBER = 1;

/**
 * The lock that a request names.
 *
 * @throws HttpProblem 400  unknown kind, invalid name, or a key for a kind without keys
 */
export function placeOf(given: { readonly kind: unknown; readonly name: unknown; readonly key?: unknown }): LockPlace {
  const { name } = given;
  const kind = LOCK_KINDS.find((one) => one === given.kind);
  const key = given.key === null || given.key === "" ? undefined : given.key;
  if (kind === undefined) throw badRequest(`kind must be one of ${LOCK_KINDS.join(", ")}.`);
  if (typeof name !== "string" || name === "" || Buffer.byteLength(name) > 512 || !isWellFormed(name)) {
    throw badRequest("name must be a string of 1 to 512 bytes.");
  }
  if (key !== undefined && (typeof key !== "string" || kind !== "mutex")) {
    throw badRequest("key must be a string, and only a mutex has one.");
  }
  return { kind, name, key };
}

/** Creates the lock object; undefined for kinds without leases. @throws errors from the library's factories */
export function lockAt(
  holdfast: Holdfast,
  { kind, name, key }: LockPlace,
  mode: "shared" | "exclusive",
): Lock | undefined {
  const make: Partial<Record<LockKind, () => Lock>> = {
    mutex: () => holdfast.mutex(name, key === undefined ? {} : { key }),
    election: () => holdfast.election(name),
    semaphore: () => holdfast.semaphore(name, { permits: ANY_NUMBER }),
    "read-write-lock": () => holdfast.readWriteLock(name)[mode === "shared" ? "read" : "write"],
    redlock: () => holdfast.redlock(name),
  };
  return make[kind]?.();
}

const UNREADABLE: Pick<Inspection, "holders" | "waiterCount" | "waiters" | "token"> = {
  holders: [],
  waiterCount: 0,
  waiters: [],
  token: undefined,
};

/** Reads a mutex with a custom `key`, which a lookup by name does not find. @throws errors from the library */
export async function mappedEntry(holdfast: Holdfast, { name, key = name }: LockPlace): Promise<LockEntry> {
  const found = await holdfast
    .mutex(name, { key })
    .inspect()
    .catch((error: unknown) => {
      if (!isWrongType(error)) throw error;
      return UNREADABLE;
    });
  const alone = { mode: "exclusive", permits: 1 } as const;
  const [first] = found.holders;
  return {
    kind: "mutex",
    name,
    key,
    state: found === UNREADABLE ? "broken" : first !== undefined ? "held" : found.waiterCount > 0 ? "awaited" : "free",
    mode: first === undefined ? undefined : "exclusive",
    token: found.token,
    holders: found.holders.map((holder) => ({ ...holder, ...alone, slots: [], goneSinceAtMs: undefined })),
    waiterCount: found.waiterCount,
    waiters: found.waiters.map((waiter) => ({
      ...waiter,
      ...alone,
      sinceAtMs: undefined,
      goneSinceAtMs: undefined,
    })),
    permits: undefined,
    pause: undefined,
    label: first?.label,
    conditions: [],
    leader: undefined,
    count: undefined,
    barrier: undefined,
    ...(found === UNREADABLE ? { unreadable: { keys: [key] } } : {}),
  };
}

function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}
