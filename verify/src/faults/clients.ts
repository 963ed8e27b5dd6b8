/** All client processes of a run, the resource that they protect, and their records. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HistoryRecord } from "../history/records.js";
import type { Random } from "../simulation/random.js";
import type { Letter } from "./cell.js";
import { type ClientProcess, startClient } from "./client-process.js";
import { merge, readLeft } from "./recording.js";
import { GuardedResource } from "./resource.js";
import type { Reach } from "./stage.js";
import type { Grace, Releases } from "./subject.js";

/** The clients to start. */
export interface ClientsOptions {
  readonly count: number;
  readonly subject: string;
  readonly letter: Letter;
  /** Where clients connect to. */
  readonly port: number;
  /** How each client, by index from 0, reaches its servers. @default by `port` */
  readonly reachOf?: (index: number) => Reach;
  /** @default "off" */
  readonly grace?: Grace;
  /** @default "awaited" */
  readonly releases?: Releases;
  readonly random: Random;
  readonly mutations?: readonly string[];
  /** The command timeout of clients, in ms. @default 500 */
  readonly commandTimeoutMs?: number;
  /** The program that starts a client, by index from 0; undefined for Node itself. */
  readonly execPath?: (index: number) => string | undefined;
}

/** The client processes of a run. */
export interface Clients {
  readonly all: readonly ClientProcess[];
  readonly resource: GuardedResource;
  /** Adds a record to the history. */
  record(record: HistoryRecord): void;
  /** All records so far; for a running process, what it has written so far. */
  records(): readonly HistoryRecord[];
  /** Ends all processes normally. @returns what they left behind */
  close(): Promise<readonly string[]>;
  /** Ends the remaining processes and removes the files. `records` still works. A second call does nothing. */
  stop(): Promise<void>;
}

/** The default command timeout. Shorter than most leases of the runs. */
export const COMMAND_TIMEOUT_MS = 500;

/** The maximum number of processes that start at the same time; with more, none would start within the timeout. */
const STARTED_AT_ONCE = 4;

/** Starts the clients. @throws Error  one did not start; then none is left running */
export async function openClients(options: ClientsOptions): Promise<Clients> {
  const { count, subject, letter, port, random, mutations = [], commandTimeoutMs = COMMAND_TIMEOUT_MS } = options;
  const directory = await mkdtemp(join(tmpdir(), "holdfast-clients-"));
  const resource = await GuardedResource.open();
  const own: HistoryRecord[] = [];
  const all: ClientProcess[] = [];
  const read = (): readonly HistoryRecord[] => {
    const incarnations = all.flatMap((client) => client.incarnations);
    const left = incarnations.map(({ file }) => readLeft(file));
    return merge(left, { records: own, effects: resource.effects, finalStates: resource.finalStates, incarnations });
  };
  let last: readonly HistoryRecord[] | undefined;
  const clients: Clients = {
    all,
    resource,
    record: (record) => void own.push(record),
    records: () => last ?? read(),
    async close() {
      const left = await Promise.all(all.map((client) => client.close()));
      return left.flat();
    },
    async stop() {
      if (last !== undefined) return;
      await Promise.all(all.map((client) => client.stop()));
      last = read();
      resource.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
  const { reachOf = (): Reach => ({ by: "port" }), grace = "off", releases = "awaited" } = options;
  const settings = { subject, letter, port, grace, releases, resourcePort: resource.port };
  const facts = { ...settings, commandTimeoutMs, mutations, clients: count };
  const start = (index: number): Promise<ClientProcess> => {
    const execPath = options.execPath?.(index);
    return startClient({
      ...facts,
      reach: reachOf(index),
      ...(execPath === undefined ? {} : { execPath }),
      name: `c${index + 1}`,
      index,
      directory,
      seed: random.whole(1, 1_000_000),
      struck: (fault) => void own.push(fault),
    });
  };
  for (let first = 0; first < count; first += STARTED_AT_ONCE) {
    const group = Array.from({ length: Math.min(STARTED_AT_ONCE, count - first) }, (_, index) => start(first + index));
    const started = await Promise.allSettled(group);
    for (const end of started) if (end.status === "fulfilled") all.push(end.value);
    const failed = started.find((end) => end.status === "rejected");
    if (failed === undefined) continue;
    await clients.stop();
    throw failed.reason;
  }
  return clients;
}
