/** Tests the completions in the real shells: what Tab makes of a line. */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { newStage } from "./terminal/stage.js";
import { BASH, openTerminal, type Terminal } from "./terminal/terminal.js";

/** A shell, and how it loads the completions. */
const SHELLS = [
  { shell: "bash", command: BASH, begin: ['eval "$(holdfast completion bash)"'] },
  {
    shell: "zsh",
    command: ["zsh", "-f", "-i"],
    begin: ["autoload -Uz compinit; compinit -u -D", 'eval "$(holdfast completion zsh)"'],
  },
  {
    shell: "fish",
    command: ["fish", "--no-config", "-i"],
    begin: ["set -g fish_autosuggestion_enabled 0", "holdfast completion fish | source"],
  },
] as const;

const stage = newStage();

beforeAll(async () => {
  await stage.holdfast.mutex("deploy:prod").acquire();
  await stage.holdfast.mutex("two words").acquire();
});

async function begun({ command, begin }: (typeof SHELLS)[number]): Promise<Terminal & AsyncDisposable> {
  const terminal = await openTerminal(command, { HOLDFAST_REDIS: stage.redis.url });
  for (const line of [...begin, "echo rea''dy"]) {
    await terminal.type(line);
    await terminal.press("Enter");
  }
  await terminal.until((screen) => /^ready$/m.test(screen), "a prompt after the completions were read");
  return terminal;
}

/** Types the text on an empty line, presses Tab, and waits until the screen matches. */
async function completed(terminal: Terminal, typed: string, fits: (screen: string) => boolean): Promise<void> {
  // Clear the line with a key of the line editor, which handles it in order. Ctrl-C is a signal and may also discard
  // what is typed after it.
  await terminal.press("C-u");
  await terminal.until((screen) => screen.trimEnd().split("\n").at(-1)?.includes("holdfast") === false, "a new line");
  await terminal.type(typed);
  await terminal.until((screen) => screen.includes(typed), typed);
  await terminal.press("Tab");
  // A completion gives up on names after a second, so that it does not block the prompt. On a slow machine, press Tab
  // again.
  let pressedAtMs = performance.now();
  await terminal.until((screen) => {
    if (fits(screen)) return true;
    if (performance.now() - pressedAtMs > 8_000) {
      pressedAtMs = performance.now();
      void terminal.press("Tab");
    }
    return false;
  }, `what Tab makes of ${typed}`);
}

/** Like `completed`, for a line that must contain the expected text. */
function completes(terminal: Terminal, typed: string, expected: string): Promise<void> {
  return completed(terminal, typed, (screen) => screen.includes(expected));
}

describe.each(SHELLS)("$shell", (shell) => {
  it("completes verbs, the flags of a verb, the values of flags, and lock names", async () => {
    await using terminal = await begun(shell);
    await completes(terminal, "holdfast rel", "holdfast release");
    await completes(terminal, "holdfast ls --wai", "holdfast ls --waiting");
    await completes(terminal, "holdfast ls --sort wa", "holdfast ls --sort waiters");
    await completes(terminal, "holdfast show --color nev", "holdfast show --color never");
    await completes(terminal, "holdfast show dep", "holdfast show deploy:prod");
    await completes(terminal, "holdfast completion fi", "holdfast completion fish");
  });

  it("completes a verb after common flags, and then the verb's own flags and names", async () => {
    await using terminal = await begun(shell);
    await completes(terminal, "holdfast --color nev", "holdfast --color never");
    await completes(terminal, "holdfast --client-name ci -q rel", "holdfast --client-name ci -q release");
    await completes(terminal, "holdfast --color never ls --sort wa", "holdfast --color never ls --sort waiters");
    await completes(terminal, "holdfast --prefix hf show dep", "holdfast --prefix hf show deploy:prod");
  });

  it("completes a name after a typed colon, and quotes a name that contains a space", async () => {
    await using terminal = await begun(shell);
    await completes(terminal, "holdfast show deploy:p", "holdfast show deploy:prod");
    await completed(terminal, "holdfast show tw", (screen) => /holdfast show (two\\ words|'two words')/.test(screen));
  });

  it("never runs a command that a lock name contains", async () => {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-hostile-"));
    const trap = join(folder, "sprung");
    const name = `evil$(touch ${trap})\`touch ${trap}\`;touch ${trap}`;
    const lease = await stage.holdfast.mutex(name).acquire();
    try {
      await using terminal = await begun(shell);
      await completed(terminal, "holdfast show evi", (screen) => screen.includes("touch"));
      // If the line is accepted as completed, the name is one word and is the name of the lock.
      await terminal.type(" --json > $HOME/shown");
      await terminal.press("Enter");
      await terminal.type("clear; cat $HOME/shown");
      await terminal.press("Enter");
      await terminal.until((screen) => screen.replaceAll("\n", "").includes('"state":"held"'), "that it was found");
      expect(existsSync(trap)).toBe(false);
    } finally {
      await lease.release();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
