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

/** How a child ended: one of the two. */
export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** What to start. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Leaves it in our own group, so that it may ask on the terminal; then only the child itself is signalled. */
  readonly isForeground: boolean;
}

/** See the file header. */
export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly #isGroup: boolean;
  /** Resolves when the child itself has ended. */
  readonly exited: Promise<ChildExit>;
  #exit: ChildExit | undefined;

  /** Use `start`. */
  private constructor(child: ChildProcess, isGroup: boolean) {
    this.#child = child;
    this.#isGroup = isGroup;
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
  static start({ file, args, env, isForeground }: Command): Promise<ProcessGroup> {
    const isGroup = !isForeground && process.platform !== "win32";
    return new Promise((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => reject(startError(file, error));
      try {
        const child = spawn(file, [...args], { stdio: "inherit", detached: isGroup, env });
        // Before anything else runs: a child may end in the turn in which it begins.
        const group = new ProcessGroup(child, isGroup);
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
