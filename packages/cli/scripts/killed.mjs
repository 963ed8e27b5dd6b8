// @ts-check
/**
 * Measures how long a command outlives a KILL of the `holdfast run` around it, on Linux.
 *
 *     node packages/cli/scripts/killed.mjs [--runs 20]
 *
 * Kills `holdfast run` while its command runs, and then at random moments while it starts the command. Prints a table
 * and is not a test, because the times depend on the other load on the machine. With a load of 14 on two cores, a
 * command that ends on TERM was gone after 23 ms (median of 20), and after at most 54 ms.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env, execPath, pid as self } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startServer } from "./server.mjs";

const at = argv.indexOf("--runs");
const runs = at < 0 ? 20 : Number(argv[at + 1]);
const main = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "holdfast-killed-"));
const { url, stop } = await startServer(folder);
const mark = `HOLDFAST_KILLED_MARK=${self}`;

try {
  const ended = [];
  const untilBegun = [];
  for (let run = 0; run < runs; run += 1) {
    const startedAt = performance.now();
    const holdfast = start(`running-${run}`);
    const [text] = await once(holdfast.stdout, "data");
    untilBegun.push(performance.now() - startedAt);
    const killedAt = performance.now();
    holdfast.kill("SIGKILL");
    while (isRunning(Number(text))) await sleep(1);
    ended.push(performance.now() - killedAt);
  }
  console.log(`${runs} runs each, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}`);
  console.log(`the command runs:        ended ${middle(ended)} ms after the KILL (median), ${most(ended)} ms at most`);

  let begun = 0;
  for (let run = 0; run < runs; run += 1) {
    const holdfast = start(`starting-${run}`);
    holdfast.stdout.on("data", () => {
      begun += 1;
    });
    // The command starts at some point in the last part of this time.
    await sleep(middle(untilBegun) * (0.6 + 0.5 * Math.random()));
    holdfast.kill("SIGKILL");
  }
  await sleep(3_000);
  console.log(`the command is starting: ${begun} had begun, ${marked().length} still run 3 s after the last KILL`);
} finally {
  for (const pid of marked()) process.kill(pid, "SIGKILL");
  await stop();
  rmSync(folder, { recursive: true, force: true });
}

/** @param {string} name */
function start(name) {
  const words = ["run", name, "--connect-timeout", "30s", "-r", url, "-c", "echo $$; exec sleep 1000"];
  const [key = "", value = ""] = mark.split("=");
  return spawn(execPath, [main, ...words], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: env.PATH, HOME: env.HOME, [key]: value },
  });
}

/** Finds the running commands of this script by a variable that they inherit. */
function marked() {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && textOf(`/proc/${entry}/environ`).split("\0").includes(mark))
    .map(Number);
}

/** @param {number} pid */
function isRunning(pid) {
  return /\) [^ZX] /.test(textOf(`/proc/${pid}/stat`));
}

/** @param {string} file */
function textOf(file) {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}

/** @param {readonly number[]} all */
function middle(all) {
  return Math.round([...all].sort((a, b) => a - b)[all.length >> 1] ?? 0);
}

/** @param {readonly number[]} all */
function most(all) {
  return Math.round(Math.max(...all));
}
