/**
 * For programs such as `holdfast doctor`, which check whether a server is suitable for locks without acquiring any.
 * Exports the scripts, the required ACL rules, and the key format.
 */
import * as scripts from "./generated/scripts.js";

export { type LockKeys, mappedKeys } from "./core/keys.js";
export { parseOwner } from "./core/protocol.js";
export { asPattern, type LeastPrivilege, leastPrivilege } from "./server/least-privilege.js";
export { clusterSlot, tagOf } from "./stores/cluster-slot.js";
export { missingPermission, type Refused } from "./stores/failure.js";

/** A script that a program can load to check whether a server accepts it. */
export interface ScriptSample {
  /** `<kind>/<verb>`. */
  readonly name: string;
  /**
   * The script with a comment appended, which gives it a different hash. If a server knows a script that grants locks,
   * clients assume that another client has already checked that the server may grant. So loading the script itself
   * could make the server grant too early.
   */
  readonly source: string;
}

/** Returns samples of the generated scripts of one Holdfast package. */
export function samplesOf(generated: Readonly<Record<string, { name: string; source: string }>>): ScriptSample[] {
  return Object.values(generated).map(({ name, source }) => ({
    name,
    source: `${source}\n-- a sample: it is loaded and never called`,
  }));
}

/** The scripts of this package, sorted by name. Recipes and interop have their own scripts. */
export const scriptSamples: readonly ScriptSample[] = samplesOf(scripts).sort((a, b) => (a.name < b.name ? -1 : 1));

/**
 * The words that may follow the prefix in keys and channels, such as `mutex` in `hf:mutex:{name}`. See
 * packages/holdfast/docs/keys.md.
 */
export const keyFamilies: ReadonlySet<string> = new Set([
  ...["mutex", "semaphore", "read-write-lock", "count-down-latch", "barrier", "election", "redlock"],
  ...[
    "client",
    "protocol",
    "lineage",
    "in",
    "timestamp",
    "redisson-semaphore",
    "redisson-latch",
    "redlock-compat",
    "once",
    "keyed",
    "coalesce",
  ],
  ...["cache", "counter", "fence", "versioned", "worker-slot"],
  // These are not kinds of lock. Other features use them for records about locks.
  ...["history", "period-marker"],
]);
