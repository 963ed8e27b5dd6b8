/**
 * Runs the command as a child process, as a shell or cron would start it: reads its output and exit code, and sends
 * signals.
 *
 * All started processes are ended after the tests of the file.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { until } from "../../../holdfast/src/testing/delays.js";

/** The path of the compiled command. */
export const MAIN: string = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

/** How a command ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The lines of stderr that are JSON. */
  readonly events: readonly Event[];
}

/** One JSON line. */
export interface Event {
  readonly event: string;
  readonly outcome?: string;
  readonly [field: string]: unknown;
}

/** A running command. */
export interface Running {
  readonly pid: number;
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout(): string;
  stderr(): string;
  events(): readonly Event[];
  /** Resolves at the first JSON line with that event. */
  event(name: string): Promise<Event>;
  signal(signal: NodeJS.Signals): void;
}

const running = new Set<ChildProcess>();
const folders = new Set<string>();
process.on("exit", endAll);
// End the processes after all tests and not after each one, because some tests run concurrently.
afterAll(async () => {
  endAll();
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
  folders.clear();
});

function endAll(): void {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
}

/** Starts `holdfast` with these words. `env` is the whole environment except PATH and HOME. */
export function start(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdio = "pipe",
  stdin: "ignore" | "pipe" = "ignore",
): Running {
  const child = spawn(process.execPath, [MAIN, ...words], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: [stdin as "ignore", stdio as "pipe", "pipe", "pipe"],
  });
  running.add(child);
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const events = (): readonly Event[] =>
    stderr
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
      .map((line) => JSON.parse(line) as Event);
  // Wait for `exit` and not for `close`, because a process that a child left running may keep the pipes open. Some
  // tests do that on purpose.
  const ended = new Promise<Ended>((resolve) => {
    child.once("exit", (code, signal) => {
      running.delete(child);
      // Output from before the exit may still be on its way.
      setImmediate(() => setTimeout(() => resolve({ code, signal, stdout, stderr, events: events() }), 20));
    });
  });
  return {
    pid: child.pid as number,
    child,
    ended,
    stdout: () => stdout,
    stderr: () => stderr,
    events,
    async event(name) {
      await until(() => child.exitCode !== null || events().some(({ event }) => event === name), `the event ${name}`);
      const found = events().find(({ event }) => event === name);
      if (found === undefined) throw new Error(`it ended without ${name}: ${stderr}`);
      return found;
    },
    // Does nothing if the process has ended.
    signal: (signal) => void child.kill(signal),
  };
}

/** Runs the command, and waits for its end. */
export function holdfast(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return start(words, env).ended;
}

/**
 * Runs a wait that must end without a grant. The command asks for the final state for at most 200 ms. On a machine that
 * stalls for longer there is no reply (exit code 69, or no holder), so the wait is repeated at most twice.
 */
export async function inVain(
  play: () => Promise<Ended>,
  tellsHolder: (ended: Ended) => boolean = () => true,
): Promise<Ended> {
  let ended = await play();
  for (let more = 2; more > 0 && (ended.code === 69 || !tellsHolder(ended)); more -= 1) ended = await play();
  return ended;
}

/** Creates a folder for the test. It is removed after the tests of the file. */
export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-cli-"));
  folders.add(folder);
  return folder;
}

/** The content of a file; undefined if it does not exist. */
export function textIn(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** Waits for the number in a file. */
export async function numberIn(file: string): Promise<number> {
  await until(() => /^\d+\n$/.test(textIn(file) ?? ""), `a number in ${file}`);
  return Number(textIn(file));
}

/** Whether a process runs. A zombie does not. */
export function isRunning(pid: number): boolean {
  const stat = textIn(`/proc/${pid}/stat`);
  return stat !== undefined && !/\) [ZX] /.test(stat);
}
