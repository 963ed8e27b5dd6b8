/** Finds what a name is used as: any kind of Holdfast's own format, or a lock of another system. */
import type { Holdfast, Inspection, Lock } from "holdfast";
import { type LockEntry, lookUp, lookUpConditions, type Surveyed } from "holdfast/admin";
import { CliError, EXIT } from "../frame/exit-codes.js";
import type { CommonFlags, Protocol } from "../frame/flags.js";
import { dialectOf } from "./dialect.js";
import { byWeight, lockOf } from "./kinds.js";

/** The current state of a lock, either of a Holdfast kind or in a foreign format. */
export type ShownLock = Omit<LockEntry, "kind"> & { readonly kind: string };

/** One use of a name. */
export interface Found {
  readonly entry: ShownLock;
  /** The lock to force-release; undefined for kinds without holders. */
  readonly lock: Pick<Lock, "forceRelease"> | undefined;
}

/**
 * Returns all uses of the name, the most informative first; empty if the name is free.
 *
 * @throws CliError 64  unknown dialect
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

/**
 * Returns the mutex with that name, and its conditions; undefined if the topology has no conditions.
 *
 * @throws as `lookUpConditions`
 */
export async function conditionsAt(
  holdfast: Holdfast,
  { topology }: Pick<CommonFlags, "topology">,
  name: string,
): Promise<Surveyed | undefined> {
  return topology === "redlock" ? undefined : await lookUpConditions(holdfast, name);
}

/** Adds the conditions that have waiters to the entry of the mutex. Adds that entry if it is missing. */
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

/** Imports the package on demand, because most users never share a lock with another system. */
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

/** The holder to release, as `forceRelease` takes it. */
export type Whose = { readonly token: number } | { readonly owner: string };

/** Returns the use of the name that has this holder; undefined if none has. */
export function heldBy(found: readonly Found[], whose: Whose): Found | undefined {
  return found.find(({ entry }) => entry.holders.some((holder) => isNamed(holder, whose)));
}

/** Whether `whose` identifies this holder. */
export function isNamed(holder: ShownLock["holders"][number], whose: Whose): boolean {
  return "token" in whose ? holder.token === whose.token : holder.owner === whose.owner;
}

/** Returns the exit code for a lock that cannot be read: 65, 69 or 77. */
export function unreadableCode({ unreadable }: Pick<ShownLock, "unreadable">): number {
  if (unreadable?.mayBeHeld === true) return EXIT.unreachable;
  return (unreadable?.keys ?? []).length > 0 ? EXIT.otherKind : EXIT.refused;
}

/** Returns the CliError with exit code 65, for a name that is not in use as the required kind of Holdfast lock. */
export function otherKindError(message: string): CliError {
  return new CliError(EXIT.otherKind, message);
}
