/** The parts of a run on real servers: servers, proxies, client processes, and the judges of all histories. */
import { setTimeout as sleep } from "node:timers/promises";
import { historyOf } from "../history/index.js";
import type { Cell, Column, Letter } from "./cell.js";
import { COMMAND_TIMEOUT_MS, openClients } from "./clients.js";
import { graceOf, isQuorum, releasesOf } from "./columns.js";
import { injectionOf } from "./injections/table.js";
import { judge } from "./judge.js";
import { OperationCount } from "./operation-count.js";
import type { Opening, OpenStage, Parts } from "./parts.js";
import { besideOf, KINDS } from "./programs/messages.js";
import type { Place, Stage, Topology } from "./stage.js";
import { peerFenceKey, peerKey } from "./subjects/peers.js";
import { startCluster } from "./topology/cluster.js";
import { monotonicMs } from "./topology/monotonic.js";
import { startQuorum } from "./topology/quorum.js";
import { startSentinel } from "./topology/sentinel.js";
import type { Durability } from "./topology/server.js";
import { startSingle, type TopologyOptions } from "./topology/topology.js";
import type { Breach } from "./verdict.js";

/** Runs with real servers and processes. */
export const PRODUCTION: Parts = {
  injection: ({ row, column }) => injectionOf(row, column),
  open,
  judge(cell, records, subject) {
    const commandTimeoutMs = injectionOf(cell.row, cell.column)?.commandTimeoutMs ?? COMMAND_TIMEOUT_MS;
    return judge(cell, historyOf(records), { subject, commandTimeoutMs });
  },
};

/** How many lease lengths a server must be up before the library assumes that it has forgotten no such lease. */
const RIPE_LEASES = 3;
/** A server reports its uptime in whole seconds. */
const UPTIME_STEP_MS = 1_000;

/** A reentrant mutex uses the keys of the mutex of its name, and a multi-lock those of several. */
const KEY_OF: Readonly<Record<string, string>> = { "reentrant-mutex": "mutex", "multi-lock": "mutex" };

async function open(opening: Opening): Promise<OpenStage> {
  const { cell, subject, injection, random, clientCount, leaseMs } = opening;
  const { serverArguments, needsClockShim, needsSyncShim, mutations, commandTimeoutMs } = injection;
  const topology = await startTopology(cell, {
    durability: injection.servers?.durability ?? durabilityOf(cell.column),
    random: random.fork(),
    ...injection.servers,
    ...(serverArguments === undefined ? {} : { serverArguments }),
    ...(needsClockShim === undefined ? {} : { needsClockShim }),
    ...(needsSyncShim === undefined ? {} : { needsSyncShim }),
  });
  let place: Place | undefined;
  try {
    const { port } = topology;
    const { letter } = cell;
    place = await injection.place?.(port);
    const ripe = graceOf(cell) === "strict" ? sleep(RIPE_LEASES * leaseMs + UPTIME_STEP_MS) : undefined;
    const clients = await openClients({
      count: clientCount,
      subject,
      letter,
      port,
      grace: graceOf(cell),
      releases: releasesOf(cell),
      random: random.fork(),
      ...(topology.reachOf === undefined ? {} : { reachOf: topology.reachOf }),
      ...(mutations === undefined ? {} : { mutations }),
      ...(commandTimeoutMs === undefined ? {} : { commandTimeoutMs }),
      ...(place === undefined ? {} : { execPath: (index: number) => place?.execPath(index) }),
    });
    await ripe;
    const count = new OperationCount();
    const breaches: Breach[] = [];
    const checked: Record<string, number> = {};
    let names = 0;
    let faults = 0;
    const keysOf = (lockName: string): string => keyPrefix(letter, lockName, cell.column);
    const stage: Stage = {
      cell,
      random,
      topology,
      clients: clients.all,
      leaseMs,
      ...(place === undefined ? {} : { place }),
      ...(subject === "holdfast" ? {} : { peer: subject }),
      nowMs: monotonicMs,
      sleep: (ms) => sleep(ms),
      struck(fault) {
        if (fault.proof !== null) faults += 1;
        clients.record({ type: "fault", ...fault });
      },
      decide(property, lockName, message) {
        checked[property] = (checked[property] ?? 0) + 1;
        if (message !== undefined) breaches.push({ property, lockName, message });
      },
      newName() {
        // If locks are spread over servers, a directed run needs names on the affected server.
        for (;;) {
          names += 1;
          const name = `${cell.row}-${names}`;
          const all = letter === "k" ? [name, besideOf(name)] : [name];
          if (all.every((each) => topology.replicas?.isOnFirst(each) !== false)) return name;
        }
      },
      keyPrefix: (lockName) => (subject === "holdfast" ? keysOf(lockName) : peerKey(subject, letter, lockName)),
      fenceKey: (lockName) => (subject === "holdfast" ? `${keysOf(lockName)}:fence` : peerFenceKey(subject)),
    };
    return {
      stage,
      records: () => clients.records(),
      counts: () => ({
        operations: count.of(clients.all.flatMap(({ incarnations }) => incarnations.map(({ file }) => file))),
        faults,
      }),
      decided: () => ({ breaches, checked }),
      record: (record) => clients.record(record),
      closeClients: () => clients.close(),
      async stop() {
        await clients.stop();
        await place?.end();
        await topology.stop();
      },
    };
  } catch (error) {
    await place?.end();
    await topology.stop();
    throw error;
  }
}

/** The prefix of a lock's keys, see packages/holdfast/docs/keys.md. */
export function keyPrefix(letter: Letter, lockName: string, column: Column = "1n"): string {
  const kind = KINDS[letter];
  return `hf:${isQuorum(column) ? "redlock" : (KEY_OF[kind] ?? kind)}:{${lockName}}`;
}

/** Masters with replicas have no persistence, as is common. Then a failover loses data permanently. */
const DURABILITIES: Readonly<Record<Column, Durability>> = {
  "1n": "1n",
  "1e": "1e",
  "1a": "1a",
  T: "1n",
  C: "1n",
  Q3: "1a",
  Q5: "1a",
};

/** The persistence of the servers of a column. */
export function durabilityOf(column: Column): Durability {
  return DURABILITIES[column];
}

/** Starts the servers of a column. */
export function startTopology({ column }: Pick<Cell, "column">, options: TopologyOptions): Promise<Topology> {
  switch (column) {
    case "Q3":
      return startQuorum(3, options);
    case "Q5":
      return startQuorum(5, options);
    case "C":
      return startCluster(options);
    case "T":
      return startSentinel(options);
    case "1n":
    case "1e":
    case "1a":
      return startSingle(options);
  }
}
