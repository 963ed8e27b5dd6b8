/**
 * All checks, in the order of docs/doctor.md.
 *
 * To add one: `read/` reads the facts of a node once, and a check in `checks/` is a function of facts without requests, so tests can give
 * it any facts. Add it here, and write its section of the page with
 * `npx vitest run packages/cli/tests/doctor/document.test.ts -u`.
 */
import type { Check } from "./check.js";
import { acl, exposure } from "./checks/access.js";
import { clientTimeouts } from "./checks/clients.js";
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

/** Every check once. */
export const CHECKS: readonly Check[] = [
  ...[eviction, memory, persistence, restartWipe, grace, role, replicas, replicaLag],
  ...[exposure, acl, version, scripts, pubsub, cluster, redlock],
  ...[clockSkew, clockRuns, latency, busy, stopWrites, connections, clientTimeouts, shared, leftovers, lostPauses],
  deadlocks,
];

/** Their ids. */
export const CHECK_IDS: readonly string[] = CHECKS.map(({ id }) => id);
