import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { afterEach, beforeEach, expect, it } from "vitest";
import { allowedCores, Cores } from "../src/cores.js";

/** Without these, the benchmark runs too, but the scheduler places the processes. */
const movesProcesses = spawnSync("taskset", ["--version"]).status === 0 && allowedCores().length > 1;

const children: ChildProcess[] = [];

async function startIdle(): Promise<number> {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 60_000)"], { stdio: "ignore" });
  children.push(child);
  await once(child, "spawn");
  return child.pid as number; // it has been spawned
}

function coresOf(pid: number): string | undefined {
  return /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

let server = 0;
let caller = 0;
beforeEach(async () => {
  server = await startIdle();
  caller = await startIdle();
});
afterEach(async () => {
  await Promise.all(
    children.splice(0).map(async (child) => {
      const ended = once(child, "exit");
      if (child.kill("SIGKILL")) await ended;
    }),
  );
});

it.skipIf(!movesProcesses)("moves servers and callers to different cores, and back", async () => {
  const before = [coresOf(server), coresOf(caller)];
  const cores = await Cores.reserve([server], [caller]);
  expect([coresOf(server), coresOf(caller)]).toEqual(allowedCores().slice(0, 2));
  await cores.release();
  expect([coresOf(server), coresOf(caller)]).toEqual(before);
});

it("keeps each core awake by a process, until the cores are released", async () => {
  const cores = await Cores.reserve([server], [caller]);
  expect(cores.wakers).toHaveLength(availableParallelism());
  expect(cores.wakers.every(isRunning)).toBe(true);
  await cores.release();
  expect(cores.wakers.some(isRunning)).toBe(false);
});
