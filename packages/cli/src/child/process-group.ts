/**
 * A child and the processes that it starts, as one process group.
 *
 * Signals go to the whole group, and a lock is released only when the group is empty, because a shell script that ends
 * can leave behind the program it was running. A process that leaves the group with `setsid` is no longer tracked.
 * Windows has no process groups, so there only the child itself is ended.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { CliError, EXIT } from "../frame/exit-codes.js";
import { Guard, type GuardPlan } from "./guard.js";

/** How a child ended: exactly one of the two fields is set. */
export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** What to start, and how the guard ends it if this process is killed. */
export interface Command extends Pick<GuardPlan, "stopSignal" | "killAfterMs"> {
  readonly file: string;
  readonly args: readonly string[];
  /** Includes HOLDFAST_OWNER. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called with a readable message if this host cannot start the guard. */
  readonly onUnguarded: (message: string) => void;
  /**
   * Keeps the child in this process's group, so that it may read from the terminal. Signals then go to the child only.
   */
  readonly isForeground: boolean;
}

/** A running child and its process group. */
export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly #isGroup: boolean;
  readonly #guard: Guard | undefined;
  /** Resolves when the child itself has ended. */
  readonly exited: Promise<ChildExit>;
  #exit: ChildExit | undefined;

  /** Private: use `start`. */
  private constructor(child: ChildProcess, isGroup: boolean, guard: Guard | undefined) {
    this.#child = child;
    this.#isGroup = isGroup;
    this.#guard = guard;
    // However this process ends, even through its own fault, the child must not keep running under a lock that is no
    // longer renewed.
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
   * Starts the command without a shell, on the standard streams of this process.
   *
   * @throws CliError 127  the command does not exist
   * @throws CliError 126  the command exists but cannot be executed
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
    // The guard starts before the command, so that the command is never unguarded.
    const guard = isUnix ? new Guard({ owner, isGroup, stopSignal, killAfterMs }, onUnguarded) : undefined;
    return new Promise((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        guard?.dismiss();
        reject(startError(file, error));
      };
      try {
        const child = spawn(file, [...args], { stdio: "inherit", detached: isGroup, env });
        // Attach the handlers immediately, because a child can end in the turn of the event loop in which it starts.
        const group = new ProcessGroup(child, isGroup, guard);
        if (child.pid !== undefined) guard?.watch(child.pid);
        child.once("spawn", () => resolve(group));
        child.on("error", fail);
      } catch (error) {
        fail(error as NodeJS.ErrnoException);
      }
    });
  }

  /** The pid of the child, which is also the id of its group. */
  get pid(): number {
    return this.#child.pid as number;
  }

  /** How the child ended; undefined while it runs. */
  get exit(): ChildExit | undefined {
    return this.#exit;
  }

  /** Signals the whole group, or only the child if it has no group. Does nothing if the processes are gone. */
  signal(signal: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return; // the child never started
    if (!this.#isGroup) {
      if (this.#exit === undefined) this.#child.kill(signal);
      return;
    }
    try {
      process.kill(-this.pid, signal);
    } catch (error) {
      // EPERM: the remaining processes belong to another user, as after `sudo`.
      if (!/^(ESRCH|EPERM)$/.test((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
  }

  /**
   * Call this when the child has received its signal because the lock was lost. If this process is killed after that,
   * the guard grants no second grace period.
   */
  hurry(): void {
    this.#guard?.hurry();
  }

  /** Dismisses the guard, because it no longer has to end this group. */
  letGo(): void {
    this.#guard?.dismiss();
  }

  /** Whether the child or any process of its group still runs. */
  isAlive(): boolean {
    if (!this.#isGroup) return this.#exit === undefined;
    try {
      process.kill(-this.pid, 0);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
    // A zombie still counts as a member of the group, and in a container zombies are often never reaped.
    return this.#exit === undefined || process.platform !== "linux" || runsInGroup(this.pid);
  }
}

/** Whether the group has a process that is not a zombie. */
function runsInGroup(group: number): boolean {
  return readdirSync("/proc").some((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "latin1");
      // The format is "pid (name) state ppid pgrp …", and the name may contain any character.
      const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(pgrp) === group && state !== "Z" && state !== "X";
    } catch {
      return false; // the process ended in the meantime
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
