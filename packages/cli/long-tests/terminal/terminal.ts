/** Provides a real terminal through tmux, with a separate tmux server for each terminal. */
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);
const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const LONGEST_WAIT_MS = 60_000;

/** A terminal in which a shell runs. */
export interface Terminal {
  /** Types the text literally. */
  type(text: string): Promise<void>;
  /** Presses keys, by their names in tmux: `Enter`, `Tab`, `C-c`. */
  press(...keys: readonly string[]): Promise<void>;
  /** The text on the screen, without spaces at the end of lines. */
  screen(): Promise<string>;
  /**
   * Resolves with the screen when it matches. @throws Error  it did not match in time; the message contains the screen
   */
  until(fits: (screen: string) => boolean, what: string): Promise<string>;
  resize(columns: number, rows: number): Promise<void>;
  /** Closes the terminal while programs still run in it. */
  hangUp(): Promise<void>;
  /** The ids of the processes in the terminal whose command line contains the text. */
  processes(text: string): Promise<number[]>;
}

/**
 * Opens a terminal of 100 × 30 with a shell in it. There, `holdfast` is the compiled command.
 *
 * @param shell  the command of the shell, without the user's configuration
 * @param env    variables of the shell, in addition to PATH
 */
export async function openTerminal(
  shell: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Terminal & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-terminal-"));
  const program = join(folder, "holdfast");
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  await chmod(program, 0o755);
  const socket = join(folder, "tmux");
  const tmux = async (...words: readonly string[]): Promise<string> =>
    (await execute("tmux", ["-S", socket, "-f", "/dev/null", ...words])).stdout;
  const variables = { PATH: `${folder}:${process.env.PATH}`, HOME: folder, TERM: "screen-256color", PS1: "$ ", ...env };
  const assigned = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  await tmux("new-session", "-d", "-x", "100", "-y", "30", "env", "-i", ...assigned, ...shell);
  await tmux("set-option", "-g", "window-size", "manual");

  const screen = async (): Promise<string> => (await tmux("capture-pane", "-p")).trimEnd();
  const shellPid = Number(await tmux("display-message", "-p", "#{pane_pid}"));
  return {
    type: async (text) => void (await tmux("send-keys", "-l", text)),
    press: async (...keys) => void (await tmux("send-keys", ...keys)),
    screen,
    async until(fits, what) {
      const endAtMs = performance.now() + LONGEST_WAIT_MS;
      for (;;) {
        const now = await screen();
        if (fits(now)) return now;
        if (performance.now() > endAtMs) throw new Error(`not on the screen: ${what}; there was:\n${now}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    resize: async (columns, rows) => void (await tmux("resize-window", "-x", String(columns), "-y", String(rows))),
    hangUp: async () => void (await tmux("kill-server")),
    async processes(text) {
      const { stdout } = await execute("ps", ["-e", "-o", "pid=,ppid=,args="]);
      const all = [...stdout.matchAll(/^\s*(\d+)\s+(\d+)\s(.*)$/gm)].map(([, pid, ppid, args = ""]) => ({
        pid: Number(pid),
        ppid: Number(ppid),
        args,
      }));
      const inside = new Set([shellPid]);
      // Repeat until no process is added, because children are not always listed after their parents.
      for (let size = 0; size < inside.size; ) {
        size = inside.size;
        for (const { pid, ppid } of all) if (inside.has(ppid)) inside.add(pid);
      }
      return all.filter(({ pid, args }) => inside.has(pid) && args.includes(text)).map(({ pid }) => pid);
    },
    async [Symbol.asyncDispose]() {
      await tmux("kill-server").catch(() => {}); // already gone if the terminal was closed
      // The shell may still be writing its history.
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/** bash without the user's configuration. */
export const BASH: readonly string[] = ["bash", "--norc", "--noprofile", "-i"];
