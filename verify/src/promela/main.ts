/**
 * Runs the Promela models with Debian's `spin`, each with all its rules and with one removed.
 *
 *     node verify/dist/promela/main.js
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";

const MODEL = fileURLToPath(new URL("../../promela/wake-up.pml", import.meta.url));

/** What is removed, and whether the model must then still hold. */
const RUNS = [
  { what: "all rules", defines: [], holds: true },
  { what: "without the re-check", defines: ["-DNO_RECHECK"], holds: false },
  { what: "without the end of a lease", defines: ["-DNO_EXPIRY"], holds: false },
];

function isThere(command: string, option: string): boolean {
  return spawnSync(command, [option]).error === undefined;
}

function run(command: string, args: readonly string[], cwd: string): string {
  const { stdout: out, stderr, status, error } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (error !== undefined || status !== 0) throw new Error(`${command} failed: ${error?.message ?? stderr + out}`);
  return out;
}

/** Whether spin finds no error under weak fairness, and how many states it has stored. */
function verify(defines: readonly string[]): { readonly holds: boolean; readonly states: string } {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-spin-"));
  try {
    run("spin", [...defines, "-a", MODEL], folder);
    run("cc", ["-O2", "-w", "-DNFAIR=3", "-o", "pan", "pan.c"], folder);
    const out = run("./pan", ["-a", "-f", "-m100000"], folder);
    const errors = /errors: (\d+)/.exec(out)?.[1];
    if (errors === undefined || out.includes("search not completed")) throw new Error(`no verdict:\n${out}`);
    return { holds: errors === "0", states: /(\d+) states, stored/.exec(out)?.[1] ?? "?" };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (!isThere("spin", "-V") || !isThere("cc", "--version")) {
  stdout.write("not run: spin and a C compiler are needed (apt-get install spin gcc)\n");
  exit(2);
}
let isFine = true;
for (const { what, defines, holds } of RUNS) {
  const found = verify(defines);
  const isExpected = found.holds === holds;
  isFine &&= isExpected;
  const verdict = found.holds ? "every live waiter is served" : "a live waiter may wait for ever";
  stdout.write(`wake-up, ${what}: ${verdict}, ${found.states} states${isExpected ? "" : " (UNEXPECTED)"}\n`);
}
exit(isFine ? 0 : 1);
