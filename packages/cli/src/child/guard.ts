/**
 * Ends a command whose `holdfast` was killed with KILL and so could not end it.
 *
 * A shell waits, in a session of its own, for the end of a pipe whose other end only `holdfast` has. The system closes that end however
 * `holdfast` ends. The guard starts before the command, so there is no moment without it. If `holdfast` is killed after it has
 * started the command and before it has reported the pid, the guard finds the command by HOLDFAST_OWNER in its environment. Only
 * Linux shows environments, so other systems do not cover these few milliseconds.
 */
import { type ChildProcess, spawn } from "node:child_process";

/** Which command, and how it is ended. */
export interface GuardPlan {
  /** The command's HOLDFAST_OWNER. */
  readonly owner: string;
  /** Whether the command leads a process group. */
  readonly isGroup: boolean;
  readonly stopSignal: NodeJS.Signals;
  /** Between `stopSignal` and KILL. */
  readonly killAfterMs: number;
}

/**
 * $1 owner, $2 "-" for a group, $3 signal, $4 tenths of a second until KILL.
 *
 * It looks before each pause: a pid may belong to another process once the group is gone.
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

/** See the file header. */
export class Guard {
  readonly #shell: ChildProcess;

  /** @param onFailure  called with a sentence for people if this host cannot start it */
  constructor({ owner, isGroup, stopSignal, killAfterMs }: GuardPlan, onFailure: (message: string) => void) {
    const tenths = String(Math.ceil(killAfterMs / 100));
    const words = ["-c", SCRIPT, "holdfast-guard", owner, isGroup ? "-" : "", stopSignal.slice(3), tenths];
    // Nothing of ours but the pipe: it must not keep open what a caller waits for, and grep must not find the guard itself.
    // Without `sleep`, KILL would follow its own signal at once, so PATH has the usual folders, whatever ours has.
    const env = { PATH: [process.env.PATH, "/usr/bin", "/bin"].filter(Boolean).join(":") };
    this.#shell = spawn("sh", words, { stdio: ["pipe", "ignore", "ignore"], detached: true, cwd: "/", env });
    this.#shell.on("error", ({ message }) => onFailure(`a KILL of holdfast will not end the command: ${message}`));
    this.#shell.unref();
    this.#shell.stdin?.on("error", () => {}); // the guard itself was killed
  }

  /** The command runs. */
  watch(pid: number): void {
    this.#shell.stdin?.write(`${pid}\n`);
  }

  /** The command has had its signal: from now on the guard leaves no grace between its own and KILL. */
  hurry(): void {
    this.#shell.stdin?.write("now\n");
  }

  /** The command is over, or may go on without us. */
  dismiss(): void {
    this.#shell.stdin?.end("off\n");
  }
}
