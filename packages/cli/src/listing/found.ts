/** What a name is used as: in our own format as every kind, or in another system's. */
import type { Holdfast, Inspection, Lock } from "holdfast";
import { type LockEntry, lookUp, lookUpConditions, type Surveyed } from "holdfast/admin";
import { CliError, EXIT } from "../frame/exit-codes.js";
import type { CommonFlags, Protocol } from "../frame/flags.js";
import { dialectOf } from "./dialect.js";
import { byWeight, lockOf } from "./kinds.js";

/** A lock as it is now, of one of our kinds or in a foreign format. */
export type ShownLock = Omit<LockEntry, "kind"> & { readonly kind: string };

/** One use of a name. */
export interface Found {
  readonly entry: ShownLock;
  /** To release it by force; undefined for kinds that nobody holds. */
  readonly lock: Pick<Lock, "forceRelease"> | undefined;
}

/**
 * All that the name is used as, the most telling first; empty if it is free.
 *
 * @throws CliError 64  a dialect that does not exist
 * @throws StoreError
 */
export async function findLocks(
  holdfast: Holdfast,
  { protocol }: Pick<CommonFlags, "protocol">,
  name: string,
): Promise<readonly Found[]> {
  if (protocol.format === "native") {
    return byWeight(await lookUp(holdfast, name)).map((entry) => ({ entry, lock: lockOf(holdfast, entry) }));
  }
  const lock = await foreignLock(holdfast, protocol, name);
  const entry = foreignEntry(protocol, await lock.inspect());
  return entry.state === "free" ? [] : [{ entry, lock }];
}

/** The mutex of that name with its conditions; undefined where there are none at all. @throws as `lookUpConditions` */
export async function conditionsAt(
  holdfast: Holdfast,
  { topology }: Pick<CommonFlags, "topology">,
  name: string,
): Promise<Surveyed | undefined> {
  return topology === "redlock" ? undefined : await lookUpConditions(holdfast, name);
}

/** All that the name is used as, the mutex with the conditions for which somebody waits. */
export function withConditions(
  holdfast: Holdfast,
  found: readonly Found[],
  [mutex]: Surveyed["locks"],
): readonly Found[] {
  if (mutex === undefined || mutex.conditions.length === 0) return found;
  const known = found.find(({ entry }) => entry.kind === "mutex");
  if (known === undefined) return [...found, { entry: mutex, lock: lockOf(holdfast, mutex) }];
  const entry = { ...known.entry, conditions: mutex.conditions };
  return found.map((one) => (one === known ? { ...known, entry } : one));
}

/** Imported when it is asked for: most never share a lock with another system. */
async function foreignLock(
  holdfast: Holdfast,
  protocol: Exclude<Protocol, { format: "native" }>,
  name: string,
): Promise<Pick<Lock, "forceRelease" | "inspect">> {
  if (protocol.format === "redisson") return (await import("@holdfast/interop/redisson")).redisson(holdfast).lock(name);
  const { timestampLock } = await import("@holdfast/interop/timestamp");
  return timestampLock(holdfast, name, await dialectOf(protocol.dialect));
}

function foreignEntry({ format }: Protocol, { name, token, holders, waiterCount }: Inspection): ShownLock {
  const isHeld = holders.length > 0;
  return {
    kind: `${format} lock`,
    name,
    key: undefined,
    state: isHeld ? "held" : "free",
    mode: isHeld ? "exclusive" : undefined,
    token,
    holders: holders.map((holder) => ({
      ...holder,
      ...{ mode: "exclusive", permits: 1, slots: [], goneSinceAtMs: undefined },
    })),
    waiterCount,
    waiters: [],
    permits: undefined,
    pause: undefined,
    label: holders[0]?.label,
    conditions: [],
    leader: undefined,
    count: undefined,
    barrier: undefined,
  };
}

/** Whom to release, as `forceRelease` takes it. */
export type Whose = { readonly token: number } | { readonly owner: string };

/** The use of the name that this holder has; undefined if nobody like that holds it. */
export function heldBy(found: readonly Found[], whose: Whose): Found | undefined {
  return found.find(({ entry }) => entry.holders.some((holder) => isNamed(holder, whose)));
}

/** Whether this is the one. */
export function isNamed(holder: ShownLock["holders"][number], whose: Whose): boolean {
  return "token" in whose ? holder.token === whose.token : holder.owner === whose.owner;
}

/** For what must be one of our kinds. @throws CliError 65 */
export function otherKindError(message: string): CliError {
  return new CliError(EXIT.otherKind, message);
}
