/** The parts that a run on real servers is put together from: servers, a line, client processes, the judges of all histories. */
import { setTimeout as sleep } from "node:timers/promises";
import { historyOf } from "../history/index.js";
import type { Column, Letter } from "./cell.js";
import { COMMAND_TIMEOUT_MS, openClients } from "./clients.js";
import { injectionOf } from "./injections/table.js";
import { judge } from "./judge.js";
import { OperationCount } from "./operation-count.js";
import type { Opening, OpenStage, Parts } from "./parts.js";
import { KINDS } from "./programs/messages.js";
import type { Place, Stage } from "./stage.js";
import { peerFenceKey, peerKey } from "./subjects/peers.js";
import { monotonicMs } from "./topology/monotonic.js";
import type { Durability } from "./topology/server.js";
import { startSingle } from "./topology/topology.js";

/** Real servers, real processes. */
export const PRODUCTION: Parts = {
  injection: injectionOf,
  open,
  judge(cell, records, subject) {
    const commandTimeoutMs = injectionOf(cell.row)?.commandTimeoutMs ?? COMMAND_TIMEOUT_MS;
    return judge(cell, historyOf(records), { subject, commandTimeoutMs });
  },
};

/** A re-entrant mutex is the mutex of its name, and a multi-lock is several. */
const KEY_OF: Readonly<Record<string, string>> = { "reentrant-mutex": "mutex", "multi-lock": "mutex" };

async function open(opening: Opening): Promise<OpenStage> {
  const { cell, subject, injection, random, clientCount, leaseMs } = opening;
  const { serverArguments, needsClockShim, needsSyncShim, mutations, commandTimeoutMs } = injection;
  const topology = await startSingle({
    durability: durabilityOf(cell.column),
    random: random.fork(),
    ...(serverArguments === undefined ? {} : { serverArguments }),
    ...(needsClockShim === undefined ? {} : { needsClockShim }),
    ...(needsSyncShim === undefined ? {} : { needsSyncShim }),
  });
  let place: Place | undefined;
  try {
    const { port } = topology;
    const { letter } = cell;
    place = await injection.place?.(port);
    const clients = await openClients({
      count: clientCount,
      subject,
      letter,
      port,
      random: random.fork(),
      ...(mutations === undefined ? {} : { mutations }),
      ...(commandTimeoutMs === undefined ? {} : { commandTimeoutMs }),
      ...(place === undefined ? {} : { execPath: (index: number) => place?.execPath(index) }),
    });
    const count = new OperationCount();
    let names = 0;
    let faults = 0;
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
      newName() {
        names += 1;
        return `${cell.row}-${names}`;
      },
      keyPrefix: (lockName) =>
        subject === "holdfast" ? keyPrefix(letter, lockName) : peerKey(subject, letter, lockName),
      fenceKey: (lockName) => (subject === "holdfast" ? `${keyPrefix(letter, lockName)}:fence` : peerFenceKey(subject)),
    };
    return {
      stage,
      records: () => clients.records(),
      counts: () => ({
        operations: count.of(clients.all.flatMap(({ incarnations }) => incarnations.map(({ file }) => file))),
        faults,
      }),
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

/** How the keys of a lock begin, see docs/redis-keys.md. */
export function keyPrefix(letter: Letter, lockName: string): string {
  const kind = KINDS[letter];
  return `hf:${KEY_OF[kind] ?? kind}:{${lockName}}`;
}

function durabilityOf(column: Column): Durability {
  if (column === "1n" || column === "1e" || column === "1a") return column;
  throw new RangeError(`the servers of the column ${column} cannot be built yet`);
}
