/**
 * Like `uncontended`, for a lock on a majority of five servers, all of them on this machine. A pair of the yardstick sends
 * five SETs in parallel and waits for all of them, and then five deletes. A library that continues after three replies can
 * be faster.
 *
 * Before it is measured, each contestant must exclude two processes from each other on the same servers.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Adapter } from "../adapters/adapter.js";
import { target } from "../results.js";
import { infoNumber, type Server } from "../server.js";
import { runCrowd } from "./crowds.js";
import { entriesOf, withoutFairness } from "./entries.js";
import type { Conditions, Prepared } from "./entry.js";
import type { Measurement } from "./measurement.js";
import { oneAtATime, TIMES } from "./one-at-a-time.js";

const SERVERS = 5;
/** For all contestants. Holdfast grants nothing on newly started servers for one lease, so the measurement waits for it. */
const LEASE_MS = 3_000;
const CHECK_SECONDS = 0.5;
const LOOK_MS = 50;

export const redlockQuorum: Measurement = {
  name: "redlock",
  title: () =>
    `Redlock on ${SERVERS} servers: uncontended acquire + release, one at a time, leases of ${LEASE_MS / 1_000} s, servers and caller on different cores`,
  seconds: 0.2,
  rounds: 4,
  hasOwnCores: true,
  servers: SERVERS,
  figures: TIMES,

  entries: (adapters) => entriesOf(adapters, prepare, absent),

  targets: (results) => [
    target(
      `Redlock on ${SERVERS} servers, p50`,
      results.ratio("holdfast", "raw", "p50"),
      { atMost: 1.3 },
      "× five parallel raw pairs",
    ),
    target(
      `Redlock on ${SERVERS} servers, p50, compared with redlock`,
      results.ratio("redlock", "holdfast", "p50"),
      { atLeast: 1 },
      "× the speed of redlock",
    ),
  ],
};

async function prepare({ name }: Adapter, conditions: Conditions): Promise<Prepared> {
  const { servers, seconds } = conditions;
  const connection = { ...conditions.connection, leaseMs: LEASE_MS, quorumPorts: servers.map(({ port }) => port) };
  await Promise.all(servers.map((server) => upFor(server, LEASE_MS)));
  await checkExclusion(name, { ...conditions, connection, seconds: CHECK_SECONDS });
  // Holdfast needs two round trips for the first acquire of a name, because the servers do not agree on it yet. These
  // acquires are part of the warm-up, which uses the same names as the runs.
  return oneAtATime(name, connection, seconds);
}

function absent(adapter: Adapter): string | undefined {
  if (adapter.openQuorum !== undefined) return undefined;
  if (adapter.onlyFree !== undefined) return adapter.onlyFree;
  if (adapter.role === "peer") return "has no lock on several servers, or it is not measured";
  return withoutFairness(adapter) ?? "measured only on ioredis, like the peers";
}

/** Waits until the server reports an uptime of at least `ms`. */
export async function upFor({ control }: Server, ms: number): Promise<void> {
  while ((await infoNumber(control, "server", "uptime_in_seconds")) * 1_000 < ms) await sleep(LOOK_MS);
}

/**
 * Checks exclusion. Callers need not be served: attempts of some peers block each other for a lease, which is allowed.
 *
 * @throws Error  two sections overlapped
 */
async function checkExclusion(name: string, conditions: Conditions): Promise<void> {
  // A separate lock per contestant: the last holder of the crowd keeps its lock for a lease, and some libraries use the
  // bare name as the key.
  await runCrowd({ name, lock: `hot:${name}`, processes: 2, callers: 1, sectionMs: 1 }, conditions);
}
