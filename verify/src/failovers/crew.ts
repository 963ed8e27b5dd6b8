/** The worker processes of a run, and the records of what they did. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { HistoryRecord } from "../history/index.js";
import type { Options } from "./options.js";
import type { Stage } from "./stage.js";
import type { Orders, Word } from "./worker.js";

/**
 * The worker processes, each with its number of callers per lock. ioredis resends requests that a lost connection left
 * without a reply; the other library does not.
 */
const CREW: readonly Pick<Orders, "library" | "callersPerName">[] = [
  { library: "ioredis", callersPerName: 2 },
  { library: "node-redis", callersPerName: 1 },
  { library: "ioredis", callersPerName: 1 },
];
/** A timeout for a process that does not end, in addition to the length of its leases. */
const END_MS = 5_000;

/** The running processes. */
export interface Crew {
  readonly records: readonly HistoryRecord[];
  /** Why leases were lost, by lease. */
  readonly losses: ReadonlyMap<number, string>;
  readonly errors: readonly string[];
  /** When the lock was last granted, on the clock of `nowMs`; -Infinity if never. */
  grantedAtMs(name: string): number;
  /** Asks all workers to stop, and kills those that do not. */
  stop(): Promise<void>;
}

/** The clock of all records, which all processes of the machine share. */
export function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** Starts the processes of a run. */
export function startCrew(stage: Stage, { leaseMs, grace, seed }: Options): Crew {
  const records: HistoryRecord[] = [];
  const losses = new Map<number, string>();
  const errors: string[] = [];
  const granted = new Map<string, number>();
  let isOver = false;
  const hear = (word: Word): void => {
    if ("record" in word) {
      const { record } = word;
      records.push(record);
      if (record.type === "operation" && record.verb === "acquire") {
        granted.set(record.lockName, Math.max(granted.get(record.lockName) ?? -Infinity, record.returnMs));
      }
    } else if ("lostBecause" in word) losses.set(word.leaseId, word.lostBecause);
    else if ("error" in word) errors.push(word.error);
  };
  const children = CREW.map((kind, number): ChildProcess => {
    const { topology, ports, masterName, names } = stage;
    const orders: Orders = { ...kind, number: number + 1, topology, ports, masterName, names, leaseMs, grace, seed };
    const child = fork(fileURLToPath(new URL("worker.js", import.meta.url)), [JSON.stringify(orders)], {
      execArgv: [],
      serialization: "advanced",
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    child.on("message", (word) => hear(word as Word));
    child.on("exit", (code, signal) => {
      if (!isOver) errors.push(`process ${number + 1} ended by itself (${signal ?? code})`);
    });
    return child;
  });
  return {
    records,
    losses,
    errors,
    grantedAtMs: (name) => granted.get(name) ?? -Infinity,
    async stop() {
      isOver = true;
      await Promise.all(
        children.map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return;
          const exited = once(child, "exit");
          child.send("stop");
          const guard = setTimeout(() => child.kill("SIGKILL"), leaseMs + END_MS);
          await exited;
          clearTimeout(guard);
        }),
      );
    },
  };
}
