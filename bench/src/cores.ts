/**
 * Makes latencies of short round trips comparable. A pair of round trips takes 2 to 3 times as long if the server and its
 * client share a core, or if their cores sleep between two requests. The scheduler changes that from second to second, so
 * without this, a median depends on where processes ran and not on the libraries.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { availableParallelism, constants, setPriority } from "node:os";

/** Keeps a core busy until the parent process ends. */
const PROGRAM = `
const parent = process.ppid;
(function work() {
  for (const untilMs = performance.now() + 5; performance.now() < untilMs; );
  if (process.ppid === parent) setImmediate(work);
})();
`;

/** The cores of this machine during one measurement. With one core, or without `taskset` (Linux), no process is moved. */
export class Cores {
  readonly #children: readonly ChildProcess[];
  readonly #moved: readonly number[];

  private constructor(children: readonly ChildProcess[], moved: readonly number[]) {
    this.#children = children;
    this.#moved = moved;
  }

  /**
   * Keeps each core awake with a process of the lowest priority, and moves servers and callers to different cores.
   *
   * @param servers  process ids of the servers
   * @param callers  process ids of the callers; only their main threads are moved
   */
  static async reserve(servers: readonly number[], callers: readonly number[]): Promise<Cores> {
    const children = Array.from({ length: availableParallelism() }, () =>
      spawn(process.execPath, ["-e", PROGRAM], { stdio: "ignore" }),
    );
    const cores = new Cores(children, [...servers, ...callers]);
    try {
      await Promise.all(children.map((child) => once(child, "spawn")));
      const allowed = allowedCores();
      for (const [i, { pid = 0 }] of children.entries()) {
        setPriority(pid, constants.priority.PRIORITY_LOW);
        move(pid, allowed[i]);
      }
      const [serverCore, callerCore] = allowed;
      if (callerCore !== undefined) {
        for (const pid of servers) move(pid, serverCore);
        for (const pid of callers) move(pid, callerCore);
      }
    } catch (error) {
      await cores.release();
      throw error;
    }
    return cores;
  }

  /** Ids of the processes that keep the cores awake. */
  get wakers(): readonly number[] {
    return this.#children.flatMap(({ pid }) => pid ?? []);
  }

  async release(): Promise<void> {
    const all = allowedCores().join(",");
    for (const pid of this.#moved) move(pid, all);
    await Promise.all(
      this.#children.map(async (child) => {
        const ended = once(child, "exit");
        if (child.kill("SIGKILL")) await ended;
      }),
    );
  }
}

/** The numbers of the cores that this process may use, which need not begin at 0. Empty on systems other than Linux. */
export function allowedCores(): readonly string[] {
  let status: string;
  try {
    status = readFileSync("/proc/self/status", "utf8");
  } catch {
    return [];
  }
  const list = /Cpus_allowed_list:\s*(\S+)/.exec(status)?.[1] ?? "";
  return list.split(",").flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 || 0 }, (_, i) => `${first + i}`);
  });
}

/** Restricts the main thread of a process to these cores. Does nothing if none are given. */
function move(pid: number, cores: string | undefined): void {
  if (cores === undefined || cores === "") return;
  spawnSync("taskset", ["-pc", cores, `${pid}`], { stdio: "ignore" });
}
