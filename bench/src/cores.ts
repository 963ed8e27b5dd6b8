/**
 * Makes latencies of short round trips comparable. A pair of round trips takes 2 to 3 times as long if the server and its client
 * share a core, or if their cores sleep between two requests. The scheduler changes that from second to second, so without this
 * a median says where processes ran, and not what the libraries took.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { availableParallelism, constants, setPriority } from "node:os";

/** Works without a pause, and ends when its parent has ended. */
const PROGRAM = `
const parent = process.ppid;
(function work() {
  for (const untilMs = performance.now() + 5; performance.now() < untilMs; );
  if (process.ppid === parent) setImmediate(work);
})();
`;

const ALL_CORES = `0-${availableParallelism() - 1}`;
const SERVER_CORE = "0";
const CALLER_CORE = "1";

/** The cores of this machine during one measurement. On one core, or without `taskset` of Linux, processes stay where they are. */
export class Cores {
  readonly #children: readonly ChildProcess[];
  readonly #moved: readonly number[];

  private constructor(children: readonly ChildProcess[], moved: readonly number[]) {
    this.#children = children;
    this.#moved = moved;
  }

  /**
   * Keeps each core awake by a process of the lowest priority, and moves servers and callers to different cores.
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
      for (const [core, { pid = 0 }] of children.entries()) {
        setPriority(pid, constants.priority.PRIORITY_LOW);
        move(pid, `${core}`);
      }
      if (availableParallelism() > 1) {
        for (const pid of servers) move(pid, SERVER_CORE);
        for (const pid of callers) move(pid, CALLER_CORE);
      }
    } catch (error) {
      await cores.release();
      throw error;
    }
    return cores;
  }

  /** Process ids of those that keep the cores awake. */
  get wakers(): readonly number[] {
    return this.#children.flatMap(({ pid }) => pid ?? []);
  }

  async release(): Promise<void> {
    for (const pid of this.#moved) move(pid, ALL_CORES);
    await Promise.all(
      this.#children.map(async (child) => {
        const ended = once(child, "exit");
        if (child.kill("SIGKILL")) await ended;
      }),
    );
  }
}

/** Lets the main thread of a process run on these cores only. */
function move(pid: number, cores: string): void {
  spawnSync("taskset", ["-pc", cores, `${pid}`], { stdio: "ignore" });
}
