/**
 * What a program needs to find out whether a server is fit for locks, without taking any: the scripts, the rights, and how keys
 * are made. `holdfast doctor` is one.
 */
import * as admin from "./generated/admin-scripts.js";
import * as pausing from "./generated/pausing-scripts.js";
import * as periodMarker from "./generated/period-marker-scripts.js";
import * as recipes from "./generated/recipes-scripts.js";
import * as redisson from "./generated/redisson-scripts.js";
import * as native from "./generated/scripts.js";
import * as timestamp from "./generated/timestamp-scripts.js";

export { type LockKeys, mappedKeys } from "./core/keys.js";
export { parseOwner } from "./core/protocol.js";
export { asPattern, type LeastPrivilege, leastPrivilege } from "./server/least-privilege.js";
export { clusterSlot } from "./stores/cluster-slot.js";
export { missingPermission, type Refused } from "./stores/permission.js";
export { tagOf } from "./stores/slot-tags.js";

/** A script, to see whether a server takes it. */
export interface ScriptSample {
  /** `<kind>/<verb>`. */
  readonly name: string;
  /**
   * The script and a comment behind it, so that its hash is not that of the script. A server that knows a script which grants
   * locks was asked before whether it may grant them: one on which somebody else has loaded it would grant too early.
   */
  readonly source: string;
}

/** Every script of the library, in the order of their names. */
export const scriptSamples: readonly ScriptSample[] = [
  native,
  redisson,
  timestamp,
  admin,
  pausing,
  periodMarker,
  recipes,
]
  .flatMap((scripts) => Object.values(scripts))
  .map(({ name, source }) => ({ name, source: `${source}\n-- a sample: it is loaded and never called` }))
  .sort((a, b) => (a.name < b.name ? -1 : 1));

/** First words of the keys and channels below the prefix: `mutex` of `hf:mutex:{name}`. See docs/redis-keys.md. */
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
    "once",
    "keyed",
    "coalesce",
  ],
  ...["cache", "counter", "fence", "versioned", "worker-slot"],
  // Written beside locks by whoever keeps a record of them.
  ...["history", "period-marker"],
]);
