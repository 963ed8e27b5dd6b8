/**
 * A child and whatever it starts, as one process group.
 *
 * The group is what is signalled and what has to be empty before a lock is given back: a shell script that is ended leaves
 * behind what it was just running. Whoever leaves the group by `setsid` leaves our sight. Windows has no groups: there only
 * the child itself is ended.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { CliError, EXIT } from "../frame/exit-codes.js";
import { Guard, type GuardPlan } from "./guard.js";

/** How a child ended: one of the two. */
export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** What to start, and how the guard ends it if this process is killed. */
export interface Command extends Pick<GuardPlan, "stopSignal" | "killAfterMs"> {
  readonly file: string;
  readonly args: readonly string[];
  /** With HOLDFAST_OWNER. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called with a sentence for people if this host cannot start the guard. */
  readonly onUnguarded: (message: string) => void;
  /** Leaves it in our own group, so that it may ask on the terminal; then only the child itself is signalled. */
  readonly isForeground: boolean;
}

/** See the file header. */
export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly #isGroup: boolean;
  readonly #guard: Guard | undefined;
  /** Resolves when the child itself has ended. */
  readonly exited: Promise<ChildExit>;
  #exit: ChildExit | undefined;

  /** Use `start`. */
  private constructor(child: ChildProcess, isGroup: boolean, guard: Guard | undefined) {
    this.#child = child;
    this.#isGroup = isGroup;
    this.#guard = guard;
    // Whatever ends this process, by a fault of its own too, must not leave the child alone with a lock that nobody renews.
    const onOurExit = (): void => this.signal("SIGTERM");
    process.once("exit", onOurExit);
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        process.off("exit", onOurExit);
        this.#exit = { code, signal };
        resolve(this.#exit);
      });
    });
  }

  /**
   * Starts it with our own standard streams, and without a shell.
   *
   * @throws CliError 127  there is no such command
   * @throws CliError 126  it is there and cannot be executed
   * @throws CliError 125  this host cannot start another process
   */
  static start({
    file,
    args,
    env,
    isForeground,
    stopSignal,
    killAfterMs,
    onUnguarded,
  }: Command): Promise<ProcessGroup> {
    const isUnix = process.platform !== "win32";
    const isGroup = !isForeground && isUnix;
    const owner = env.HOLDFAST_OWNER ?? "";
    // Before the command, so that it is never without one.
    const guard = isUnix ? new Guard({ owner, isGroup, stopSignal, killAfterMs }, onUnguarded) : undefined;
    return new Promise((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        guard?.dismiss();
        reject(startError(file, error));
      };
      try {
        const child = spawn(file, [...args], { stdio: "inherit", detached: isGroup, env });
        // Before anything else runs: a child may end in the turn in which it begins.
        const group = new ProcessGroup(child, isGroup, guard);
        if (child.pid !== undefined) guard?.watch(child.pid);
        child.once("spawn", () => resolve(group));
        child.on("error", fail);
      } catch (error) {
        fail(error as NodeJS.ErrnoException);
      }
    });
  }

  /** Of the child, and of its group. */
  get pid(): number {
    return this.#child.pid as number;
  }

  /** How the child ended; undefined while it runs. */
  get exit(): ChildExit | undefined {
    return this.#exit;
  }

  /** Signals all of the group, or the child alone where there is none. Whoever is gone is no trouble. */
  signal(signal: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return; // it never started
    if (!this.#isGroup) {
      if (this.#exit === undefined) this.#child.kill(signal);
      return;
    }
    try {
      process.kill(-this.pid, signal);
    } catch (error) {
      // EPERM: all that is left of it belongs to somebody else, as after `sudo`.
      if (!/^(ESRCH|EPERM)$/.test((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
  }

  /** The child has had its signal because of a lost lock: if this process is killed now, there is no second grace. */
  hurry(): void {
    this.#guard?.hurry();
  }

  /** Nothing of it is to be ended any more. */
  letGo(): void {
    this.#guard?.dismiss();
  }

  /** Whether anything of it still runs. */
  isAlive(): boolean {
    if (!this.#isGroup) return this.#exit === undefined;
    try {
      process.kill(-this.pid, 0);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
    // A dead process that nobody has reaped still counts as there, and in a container often nobody ever does.
    return this.#exit === undefined || process.platform !== "linux" || runsInGroup(this.pid);
  }
}

/** Whether a process of that group is more than a name in the process table. */
function runsInGroup(group: number): boolean {
  return readdirSync("/proc").some((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "latin1");
      // "pid (name) state ppid pgrp …", where the name may hold anything.
      const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(pgrp) === group && state !== "Z" && state !== "X";
    } catch {
      return false; // it ended while we looked
    }
  });
}

function startError(file: string, error: NodeJS.ErrnoException): CliError {
  switch (error.code) {
    case "ENOENT":
      return new CliError(EXIT.notFound, `${file}: command not found`, { cause: error });
    case "EACCES":
    case "ENOEXEC":
    case "EISDIR":
    case "ENOTDIR":
    case "E2BIG":
    case "ELOOP":
    case "ETXTBSY":
      return new CliError(EXIT.notExecutable, `${file} cannot be executed: ${error.code}`, { cause: error });
    default:
      return new CliError(EXIT.internal, `${file} could not be started: ${error.message}`, { cause: error });
  }
}
