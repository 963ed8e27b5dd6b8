/** Thousands of waits in one process that time out together. Each run uses a new process. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Conditions } from "../measurements/entry.js";
import { quantile } from "../statistics.js";
import type { Kind, Stampede } from "./program.js";

const PROGRAM = fileURLToPath(new URL("./program.js", import.meta.url));
const LONGEST_RUN_MS = 60_000;

/** How the callers wait, in the order of the table. */
const KINDS: readonly Kind[] = ["mutex", "mutex, strict", "semaphore"];

/** One line of the table: medians over the runs. */
export interface TimeoutsLine {
  readonly kind: Kind;
  readonly callers: number;
  readonly stallMs: number;
  readonly longestStallMs: number;
  readonly scriptCalls: number;
  readonly lastMs: number;
  readonly told: number;
  readonly leasesLost: number;
}

/** Runs each kind `repetitions` times. */
export async function measureTimeouts(
  { server, repetitions }: Omit<Conditions, "seconds">,
  callers: number,
  onRun: (text: string) => void = () => {},
): Promise<readonly TimeoutsLine[]> {
  const lines: TimeoutsLine[] = [];
  for (const kind of KINDS) {
    const runs: Stampede[] = [];
    while (runs.length < repetitions) {
      onRun(`timeouts: ${kind} ${runs.length + 1}/${repetitions}`);
      await server.control.flushall();
      runs.push(await stampedeOf(kind, server.port, callers));
    }
    const median = (of: (run: Stampede) => number): number => quantile(runs.map(of), 0.5);
    lines.push({
      kind,
      callers,
      stallMs: median(({ stallMs }) => stallMs),
      longestStallMs: Math.max(...runs.map(({ stallMs }) => stallMs)),
      scriptCalls: median(({ scriptCalls }) => scriptCalls),
      lastMs: median(({ lastMs }) => lastMs),
      told: median(({ told }) => told),
      leasesLost: runs.filter(({ isLeaseLost }) => isLeaseLost).length,
    });
  }
  return lines;
}

async function stampedeOf(kind: Kind, port: number, callers: number): Promise<Stampede> {
  const child = fork(PROGRAM, [kind, `${port}`, `${callers}`]);
  const limit = setTimeout(() => child.kill("SIGKILL"), LONGEST_RUN_MS);
  try {
    const exited = once(child, "exit").then(([code]) => {
      throw new Error(`the process ended with ${code} before it had measured`);
    });
    exited.catch(() => {});
    // Only program.ts sends this.
    const [done] = (await Promise.race([once(child, "message"), exited])) as [Stampede];
    return done;
  } finally {
    clearTimeout(limit);
    child.kill("SIGKILL");
  }
}
