// @ts-check
/**
 * npm run test:all: runs everything that `npm test` leaves out.
 *
 * The last line is `N passed, N failed`, the sum over all commands. A command that does not print its counts has failed.
 */
import { spawn } from "node:child_process";
import { execPath, exit, stderr, stdout } from "node:process";

import { root } from "./setup.mjs";

/**
 * The commands of one row run at the same time, because the first mostly waits: for leases to end and for processes to
 * start. Only one command of a row may install system packages or start a browser. `long.mjs` runs alone, because some
 * of its tests check durations.
 *
 * @type {ReadonlyArray<ReadonlyArray<readonly [string, ...string[]]>>}
 */
const ROWS = [
  [["test.mjs", "--rest"]],
  // This build together with the build of protocol 0, half a minute in each direction.
  [["interop.mjs"], ["verify.mjs", "upgrade", "--seconds", "30"]],
  [["cli.mjs"], ["older-peers.mjs"]],
  [["installs.mjs"]],
  [["docs.mjs", "--check"]],
  // Everything except the sixty ticks of a schedule, which take 42 minutes.
  [["long.mjs", "!scheduled-soak"]],
  [["verify.mjs", "pr"]],
];

/** @type {string[]} */
const red = [];
let passed = 0;
let failed = 0;
for (const [first, ...others] of ROWS) {
  if (first === undefined) continue;
  // Show the output of one command while it runs, and that of the others afterwards, so that their lines do not mix.
  const beside = others.map((command) => run(command, false));
  tell(first, await run(first, true));
  for (const [i, command] of others.entries()) {
    const ended = await beside[i];
    if (ended === undefined) continue;
    stdout.write(ended.text);
    tell(command, ended);
  }
}
for (const line of red) console.log(line);
console.log(`${passed} passed, ${failed} failed`);
exit(failed === 0 && passed > 0 ? 0 : 1);

/**
 * Counts the tests of a command that ended, and prints how it ended.
 *
 * @param {readonly string[]} command
 * @param {{ code: number, text: string, tookMs: number }} ended
 */
function tell(command, { code, text, tookMs }) {
  const lines = text.trimEnd().split("\n");
  const [, green = "0", bad = "0"] = /^(\d+) passed, (\d+) failed$/.exec(lines.at(-1) ?? "") ?? [];
  passed += Number(green);
  failed += Number(bad) > 0 || code === 0 ? Number(bad) : 1;
  if (Number(green) === 0 && Number(bad) === 0) failed += code === 0 ? 1 : 0;
  // Repeated at the end, because often only the end of a long log is kept.
  for (const line of lines)
    if (/^(failed|skipped): |^✗ |^NOT RUN /.test(line)) red.push(`${command.join(" ")}: ${line}`);
  console.log(`· ${command.join(" ")}: ${Math.round(tookMs / 1_000)} s, ended with code ${code}`);
}

/**
 * Runs a script of this folder.
 *
 * @param {readonly string[]} command
 * @param {boolean} isShown  whether to print its output as it arrives
 * @returns {Promise<{ code: number, text: string, tookMs: number }>}  the text is its standard output; standard error is always printed as it arrives
 */
function run([script, ...args], isShown) {
  return new Promise((resolve) => {
    const startedAtMs = performance.now();
    let text = "";
    const done = (/** @type {number} */ code) => resolve({ code, text, tookMs: performance.now() - startedAtMs });
    const child = spawn(execPath, [`scripts/${script}`, ...args], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.on("data", (chunk) => {
      text += chunk;
      if (isShown) stdout.write(chunk);
    });
    child.stderr.on("data", (chunk) => stderr.write(chunk));
    child.on("error", (error) => {
      text += `failed: ${error.message}\n`;
      done(1);
    });
    child.on("close", (code) => done(code ?? 1));
  });
}
