/** Creates the lock object for an entry of a list. */
import type { Holdfast, Lock } from "holdfast";
import type { LockEntry } from "holdfast/admin";

/** The largest possible number of permits. The value does not matter for verbs that acquire none. */
const ANY_PERMITS = 1_000_000;

/**
 * Returns the lock for verbs that acquire nothing. Undefined for kinds without holders, for locks of another topology,
 * and for locks that cannot be read, except Redlocks of which a server reports a holder.
 */
export function lockOf(
  holdfast: Holdfast,
  {
    kind,
    name,
    key,
    needsTopology,
    unreadable,
  }: Pick<LockEntry, "kind" | "name" | "key" | "needsTopology" | "unreadable">,
): Pick<Lock, "forceRelease" | "inspect"> | undefined {
  if (needsTopology !== undefined || (unreadable !== undefined && unreadable.mayBeHeld !== true)) return undefined;
  switch (kind) {
    case "mutex":
      return holdfast.mutex(name, key === undefined ? {} : { key });
    case "semaphore":
      return holdfast.semaphore(name, { permits: ANY_PERMITS });
    case "read-write-lock":
      return holdfast.readWriteLock(name).write;
    case "election":
      return holdfast.election(name);
    case "redlock":
      return holdfast.redlock(name);
    default:
      return undefined;
  }
}

const WEIGHT: Readonly<Record<LockEntry["state"], number>> = {
  held: 0,
  paused: 1,
  awaited: 2,
  gathering: 3,
  counting: 4,
  broken: 5,
  free: 6,
};

/**
 * Orders the uses of a name, the most informative first. A name should be in use as only one kind, but that is not
 * enforced.
 */
export function byWeight(entries: readonly LockEntry[]): LockEntry[] {
  const weightOf = ({ state, holders }: LockEntry): number => (holders.length > 0 ? 0 : WEIGHT[state]);
  return [...entries].sort((a, b) => weightOf(a) - weightOf(b));
}
