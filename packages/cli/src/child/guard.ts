/**
 * Ends the command if `holdfast` is killed with KILL and so cannot end the command itself.
 *
 * The guard is a shell in a separate session. It reads from a pipe that only `holdfast` can write to, until the pipe is
 * closed. The system closes it however `holdfast` ends. The guard starts before the command, so the command is never
 * unguarded. If `holdfast` is killed after it has started the command but before it has reported the pid, the guard
 * finds the command by HOLDFAST_OWNER in its environment. Only Linux exposes the environment of processes, so on
 * other systems the guard does not cover these few milliseconds.
 */
import { type ChildProcess, spawn } from "node:child_process";

/** Which command to end, and how. */
export interface GuardPlan {
  /** The command's HOLDFAST_OWNER. */
  readonly owner: string;
  /** Whether the command leads a process group. */
  readonly isGroup: boolean;
  readonly stopSignal: NodeJS.Signals;
  /** Time between `stopSignal` and KILL. */
  readonly killAfterMs: number;
}

/**
 * Arguments: $1 owner, $2 "-" for a group, $3 signal, $4 tenths of a second until KILL.
 *
 * The script checks the process before each pause, because another process may reuse the pid once the group is gone.
 */
const SCRIPT = `trap '' HUP INT QUIT TERM
pids= left=$4
while read -r word; do
  case $word in
    off) exit ;;
    now) left=0 ;;
    *) pids=$2$word ;;
  esac
done
runs() { kill -s 0 -- "$1"; }
for try in 1 2 3; do
  [ -n "$pids$1" ] || exit
  [ -n "$pids" ] && break
  for file in $(grep -lzxF "HOLDFAST_OWNER=$1" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}
    runs "$2\${pid%/*}" && pids="$pids $2\${pid%/*}"
  done
  [ -n "$pids" ] || sleep 0.1 || sleep 1
done
for pid in $pids; do
  kill -s "$3" -- $pid
  while [ "$left" -gt 0 ] && runs $pid; do
    sleep 0.1 || sleep 1
    left=$((left - 1))
  done
  kill -s KILL -- $pid
done`;

/** The guard process of one command. */
export class Guard {
  readonly #shell: ChildProcess;

  /** @param onFailure  called with a readable message if this host cannot start the guard */
  constructor({ owner, isGroup, stopSignal, killAfterMs }: GuardPlan, onFailure: (message: string) => void) {
    const tenths = String(Math.ceil(killAfterMs / 100));
    const words = ["-c", SCRIPT, "holdfast-guard", owner, isGroup ? "-" : "", stopSignal.slice(3), tenths];
    // The guard inherits nothing but the pipe: it must not keep files open that a caller waits for, and its grep must
    // not find the guard itself. PATH always includes the usual folders: without `sleep`, KILL would follow
    // `stopSignal` immediately.
    const env = { PATH: [process.env.PATH, "/usr/bin", "/bin"].filter(Boolean).join(":") };
    this.#shell = spawn("sh", words, { stdio: ["pipe", "ignore", "ignore"], detached: true, cwd: "/", env });
    this.#shell.on("error", ({ message }) => {
      const then = "if holdfast is killed with KILL, the command keeps running";
      onFailure(`the guard process did not start (${message}): ${then}`);
    });
    this.#shell.unref();
    this.#shell.stdin?.on("error", () => {}); // the guard itself may have been killed
  }

  /** Tells the guard the pid of the running command. */
  watch(pid: number): void {
    this.#shell.stdin?.write(`${pid}\n`);
  }

  /**
   * Makes the guard send KILL immediately after `stopSignal`. Call this when the command has already received its
   * signal.
   */
  hurry(): void {
    this.#shell.stdin?.write("now\n");
  }

  /** Stops the guard, because the command has ended or may continue without `holdfast`. */
  dismiss(): void {
    this.#shell.stdin?.end("off\n");
  }
}
