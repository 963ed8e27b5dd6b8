/** From what a page names to the lock itself, by public means only. */
import type { Holdfast, Inspection, Lock } from "holdfast";
import { LOCK_KINDS, type LockEntry, type LockKind } from "holdfast/admin";
import type { LockPlace } from "./place.js";
import { badRequest } from "./problem.js";
import { isWrongType } from "./trouble.js";

/** Of a semaphore that is only looked at or released: what it was declared with counts for nothing. */
const ANY_NUMBER = 1;

/**
 * The place that a request names.
 *
 * @throws HttpProblem 400  no such kind, a name that no lock can have, or a key where there is none
 */
export function placeOf(given: { readonly kind: unknown; readonly name: unknown; readonly key?: unknown }): LockPlace {
  const { name } = given;
  const kind = LOCK_KINDS.find((one) => one === given.kind);
  const key = given.key === null || given.key === "" ? undefined : given.key;
  if (kind === undefined) throw badRequest(`kind must be one of ${LOCK_KINDS.join(", ")}.`);
  if (typeof name !== "string" || name === "" || Buffer.byteLength(name) > 512 || !isWellFormed(name)) {
    throw badRequest("name must be a text of 1 to 512 bytes.");
  }
  if (key !== undefined && (typeof key !== "string" || kind !== "mutex")) {
    throw badRequest("key must be a text, and only a mutex has one.");
  }
  return { kind, name, key };
}

/** The lock there; undefined for kinds that nobody holds by a lease. @throws as the factories of the library */
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

/** A mutex under a key of the application's own, which no look by name finds. @throws as the library */
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
