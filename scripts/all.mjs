// @ts-check
/**
 * npm run test:all: runs everything that `npm test` leaves out, one command after the other.
 *
 * The last line is `N passed, N failed`, the sum over all commands. A command that does not print its counts has failed.
 */
import { spawn } from "node:child_process";
import { execPath, exit, stderr, stdout } from "node:process";

import { root } from "./setup.mjs";

/** @type {ReadonlyArray<readonly [string, ...string[]]>} */
const COMMANDS = [
  ["test.mjs", "--rest"],
  ["interop.mjs"],
  ["cli.mjs"],
  ["older-peers.mjs"],
  ["installs.mjs"],
  ["docs.mjs", "--check"],
  // Everything except the sixty ticks of a schedule, which take 42 minutes.
  ["long.mjs", "!scheduled-soak"],
  ["verify.mjs", "pr"],
  // This build together with the build of protocol 0, half a minute in each direction.
  ["verify.mjs", "upgrade", "--seconds", "30"],
];

/** @type {string[]} */
const red = [];
let passed = 0;
let failed = 0;
for (const command of COMMANDS) {
  const startedAtMs = performance.now();
  const { code, lines } = await run(command);
  const seconds = Math.round((performance.now() - startedAtMs) / 1000);
  const [, green = "0", bad = "0"] = /^(\d+) passed, (\d+) failed$/.exec(lines.at(-1) ?? "") ?? [];
  passed += Number(green);
  failed += Number(bad) > 0 || code === 0 ? Number(bad) : 1;
  if (Number(green) === 0 && Number(bad) === 0) failed += code === 0 ? 1 : 0;
  // Repeated at the end, because often only the end of a long log is kept.
  for (const line of lines)
    if (/^(failed|skipped): |^✗ |^NOT RUN /.test(line)) red.push(`${command.join(" ")}: ${line}`);
  console.log(`· ${command.join(" ")}: ${seconds} s, ended with code ${code}`);
}
for (const line of red) console.log(line);
console.log(`${passed} passed, ${failed} failed`);
exit(failed === 0 && passed > 0 ? 0 : 1);

/**
 * Runs a script of this folder, and shows its output.
 *
 * @param {readonly [string, ...string[]]} command
 * @returns {Promise<{ code: number, lines: string[] }>}
 */
function run([script, ...args]) {
  return new Promise((resolve) => {
    const child = spawn(execPath, [`scripts/${script}`, ...args], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += chunk;
      stdout.write(chunk);
    });
    child.stderr.on("data", (chunk) => stderr.write(chunk));
    child.on("error", (error) => resolve({ code: 1, lines: [`failed: ${error.message}`] }));
    child.on("close", (code) => resolve({ code: code ?? 1, lines: text.trimEnd().split("\n") }));
  });
}
