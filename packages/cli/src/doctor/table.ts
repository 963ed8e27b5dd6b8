/**
 * All checks, in the order of the three documentation pages that describe them.
 *
 * To add a check, write it in `checks/` as a function of facts that sends no requests, so that tests can pass in any
 * facts. `read/` reads the facts of each node once. Add the check here, and write its section of the page with
 * `npx vitest run packages/cli/tests/doctor/document.test.ts -u`.
 */
import type { Check } from "./check.js";
import { acl, exposure } from "./checks/access.js";
import { clientTimeouts, protocols } from "./checks/clients.js";
import { clockRuns, clockSkew } from "./checks/clocks.js";
import { deadlocks } from "./checks/deadlocks.js";
import { grace, replicaLag, replicas, role } from "./checks/failover.js";
import { cluster, redlock } from "./checks/groups.js";
import { leftovers, shared } from "./checks/keys.js";
import { busy, connections, latency } from "./checks/load.js";
import { eviction, memory } from "./checks/memory.js";
import { lostPauses } from "./checks/pauses.js";
import { persistence, restartWipe, stopWrites } from "./checks/persistence.js";
import { pubsub, scripts, version } from "./checks/scripting.js";

/** Checks of what a server needs to keep locks: memory, disk and replication. See docs/doctor-data.md. */
export const DATA_CHECKS: readonly Check[] = [
  eviction,
  memory,
  persistence,
  restartWipe,
  grace,
  role,
  replicas,
  replicaLag,
];

/** Checks of who may use the server, and whether scripts, messages and topology work. See docs/doctor-access.md. */
export const ACCESS_CHECKS: readonly Check[] = [exposure, acl, version, scripts, pubsub, cluster, redlock];

/** Checks of how the server runs and what it contains. See docs/doctor-operation.md. */
export const OPERATION_CHECKS: readonly Check[] = [
  ...[clockSkew, clockRuns, latency, busy, stopWrites, connections, clientTimeouts, protocols],
  ...[shared, leftovers, lostPauses, deadlocks],
];

/** All checks. */
export const CHECKS: readonly Check[] = [...DATA_CHECKS, ...ACCESS_CHECKS, ...OPERATION_CHECKS];

/** The ids of all checks. */
export const CHECK_IDS: readonly string[] = CHECKS.map(({ id }) => id);
