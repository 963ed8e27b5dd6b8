/**
 * Tests what happens on a terminal: `top`, `--watch`, the question of `release --force`, and a terminal that goes away.
 */
import { describe, expect, it } from "vitest";
import { newStage } from "./terminal/stage.js";
import { BASH, openTerminal, type Terminal } from "./terminal/terminal.js";

const stage = newStage();

async function shell(): Promise<Terminal & AsyncDisposable> {
  const terminal = await openTerminal(BASH, { HOLDFAST_REDIS: stage.redis.url });
  await run(terminal, "echo be''fore");
  await terminal.until((screen) => /^before$/m.test(screen), "a prompt");
  return terminal;
}

async function run(terminal: Terminal, line: string): Promise<void> {
  await terminal.type(line);
  await terminal.press("Enter");
}

/** Checks that the screen is restored, and that the command ended with this code. */
async function ends(terminal: Terminal, code: number): Promise<void> {
  // Wait for the prompt, because the command would read anything that is typed before the shell is back.
  await terminal.until((now) => now.trimEnd().endsWith("\n$"), "a prompt");
  await run(terminal, 'echo "code=$?"');
  const screen = await terminal.until((now) => /^code=\d+$/m.test(now), "the exit code");
  expect(screen).toContain("\nbefore\n");
  expect(screen).toContain(`code=${code}`);
  expect(screen).not.toContain("NAME ");
}

/** The listed names, in the order on the screen. */
function listed(screen: string): string[] {
  const lines = screen.split("\n");
  const head = lines.findIndex((line) => line.startsWith("NAME"));
  return head < 0 ? [] : lines.slice(head + 1).map((line) => line.split(" ")[0] ?? "");
}

describe("top", () => {
  it("lists the most contended lock first, and has keys to sort, filter, stop and quit", async () => {
    await using busy = await stage.holdfast.mutex("top:busy").acquire({ label: "holds" });
    await using _ = await stage.holdfast.mutex("top:a").acquire();
    const leaving = new AbortController();
    const waiting = stage.holdfast
      .mutex("top:busy")
      .acquire({ waitMs: Number.POSITIVE_INFINITY, signal: leaving.signal, fairness: "strict" })
      .catch(() => undefined);
    await using terminal = await shell();
    await run(terminal, "holdfast top 'top:*' --interval 0.3");
    await terminal.until((screen) => listed(screen).join() === "top:busy,top:a", "the list");
    await terminal.until((screen) => /top:busy .* 100 /.test(screen), "how much it was held");

    for (const order of ["longest wait", "held", "name"]) {
      await terminal.press("s");
      await terminal.until((screen) => screen.includes(`sorted by ${order}`), order);
    }
    await terminal.until((screen) => listed(screen).join() === "top:a,top:busy", "by name");

    await terminal.press("/");
    await terminal.type("busx");
    await terminal.press("BSpace");
    await terminal.type("y");
    await terminal.until(
      (screen) => screen.includes("filter: busy_") && listed(screen).join() === "top:busy",
      "filtered",
    );
    await terminal.press("Enter");
    await terminal.until((screen) => screen.includes("filter: busy  [s]ort"), "the filter is kept");
    await terminal.press("Escape");
    await terminal.until((screen) => listed(screen).length === 2, "the filter is gone");

    await terminal.press("p");
    await terminal.until((screen) => screen.includes("FROZEN"), "frozen");
    leaving.abort();
    await waiting;
    const stopped = await terminal.screen();
    await terminal.press("p");
    await terminal.until((screen) => screen !== stopped && /top:busy +mutex +held +0 /.test(screen), "it goes on");

    await terminal.press("q");
    await ends(terminal, 0);
    expect(busy.validForMs()).toBeGreaterThan(0);
  });

  it("adapts to a new terminal size, and never wraps a line", async () => {
    await using _ = await stage.holdfast.mutex(`wide:${"日本".repeat(60)}`).acquire();
    await using terminal = await shell();
    await run(terminal, "holdfast top 'wide:*' --interval 0.3");
    await terminal.until((screen) => /^wide:日本.*…$/m.test(screen), "a line that was cut");
    await terminal.resize(50, 10);
    await terminal.until((screen) => {
      const line = screen.split("\n").find((one) => one.startsWith("wide:"));
      // Each of these characters takes two columns.
      const columns = Array.from(line ?? "").reduce((sum, one) => sum + (/[日本]/.test(one) ? 2 : 1), 0);
      return line?.endsWith("…") === true && columns <= 50;
    }, "the same, narrower");
    expect((await terminal.screen()).split("\n").length).toBeLessThanOrEqual(10);
    await terminal.press("C-c");
    await terminal.resize(100, 30);
    await ends(terminal, 0);
  });

  it("reports that Redis does not reply, and continues when it replies again", async () => {
    await using _ = await stage.holdfast.mutex("away:x").acquire({ leaseMs: 120_000 });
    await using terminal = await shell();
    await run(terminal, "holdfast top 'away:*' --interval 0.3 --command-timeout 1s");
    await terminal.until((screen) => listed(screen).join() === "away:x", "the list");
    stage.redis.freeze();
    try {
      await terminal.until((screen) => screen.includes("retrying: "), "that it does not reply");
    } finally {
      stage.redis.resume();
    }
    await terminal.until((screen) => !screen.includes("retrying: ") && listed(screen).length === 1, "it is back");
    await terminal.press("q");
    await ends(terminal, 0);
  });
});

describe("--watch", () => {
  it("updates the state in place, and restores the terminal at the end", async () => {
    const lease = await stage.holdfast.mutex("watched").acquire();
    await using terminal = await shell();
    await run(terminal, "holdfast ls watched --watch 0.3");
    await terminal.until((screen) => /^watched +mutex +held/m.test(screen), "held");
    await lease.release();
    await terminal.until((screen) => !screen.includes("watched "), "free");
    await terminal.press("C-c");
    await ends(terminal, 0);
  });
});

describe("release --force", () => {
  it('shows the holder and asks: "no" exits with 1 and changes nothing, "yes" releases the lock', async () => {
    const lease = await stage.holdfast.mutex("asked").acquire({ label: "release 4.2\x1b[2J" });
    await using terminal = await shell();
    await run(terminal, "holdfast release asked --force -m why");
    const question = await terminal.until((screen) => screen.includes("Release it? [y/N]"), "the question");
    expect(question.replaceAll("\n", "")).toContain('"release 4.2\\x1b[2J"');
    await run(terminal, "n");
    await terminal.until((screen) => screen.includes("nothing was released"), "no");
    // Wait for the prompt, because the command would read anything that is typed before the shell is back.
    await terminal.until((now) => now.trimEnd().endsWith("\n$"), "a prompt");
    await run(terminal, 'echo "code=$?"');
    await terminal.until((screen) => screen.includes("code=1"), "1");
    expect(lease.validForMs()).toBeGreaterThan(0);

    await run(terminal, "clear; holdfast release asked --force -m why");
    await terminal.until((screen) => screen.includes("Release it? [y/N]"), "the question again");
    await run(terminal, "y");
    await terminal.until((screen) => screen.includes("released asked from"), "released");
    expect(lease.signal.aborted).toBe(true);
  });

  it("refuses --raw on a terminal, because a lock name could contain control sequences", async () => {
    await using terminal = await shell();
    await run(terminal, 'holdfast ls --raw; echo "code=$?"');
    await terminal.until((screen) => screen.includes("code=64") && screen.includes("--raw is for pipes"), "refused");
  });
});

describe("a terminal that closes", () => {
  it.each(["top --interval 0.3", "ls --watch 0.3", "elect gone --listen"])("ends %s", async (words) => {
    await using terminal = await shell();
    await run(terminal, `holdfast ${words}`);
    let pids: number[] = [];
    await terminal.until(() => true, "a screen");
    for (let tries = 0; pids.length === 0 && tries < 200; tries += 1) {
      pids = await terminal.processes("dist/main.js");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(pids).toHaveLength(1);
    await terminal.hangUp();
    const [pid = 0] = pids;
    await expect.poll(() => isRunning(pid), { timeout: 30_000 }).toBe(false);
  });

  it("makes the leader resign, so that the next candidate leads immediately", async () => {
    await using terminal = await shell();
    await run(terminal, "holdfast elect hung-up --delay 0");
    await terminal.until((screen) => screen.includes("elected"), "elected");
    await terminal.hangUp();
    // The wait is much shorter than the lease of 30 s.
    const leadership = await stage.holdfast.election("hung-up").campaign("next", { waitMs: 15_000 });
    await leadership.release();
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
