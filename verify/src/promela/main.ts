/**
 * Checks the Promela models with Debian's `spin`: each with all rules, and with one rule removed at a time.
 *
 *     node verify/dist/promela/main.js
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";

const MODELS = fileURLToPath(new URL("../../promela/", import.meta.url));

/** A run of spin. */
interface Run {
  readonly model: string;
  /** The name of the LTL formula. */
  readonly property: string;
  /** The removed rule, in words. */
  readonly what: string;
  readonly defines: readonly string[];
  /** Whether the property must hold in this run. */
  readonly holds: boolean;
}

function runsOf(model: string, property: string, rules: Readonly<Record<string, string>>): Run[] {
  const without = Object.entries(rules).map(([define, what]) => ({
    model,
    property,
    what: `without ${what}`,
    defines: [`-D${define}`],
    holds: false,
  }));
  return [{ model, property, what: "all rules", defines: [], holds: true }, ...without];
}

const RUNS: readonly Run[] = [
  ...runsOf("wake-up", "woken", { NO_RECHECK: "the re-check", NO_EXPIRY: "the end of a lease" }),
  ...runsOf("failover", "goesOn", {
    NO_RECHECK: "the re-check after the quiet time",
    NO_QUIET_END: "an end of the quiet time",
  }),
  ...runsOf("failover", "alone", { NO_QUIET: "the quiet time", SHORT_QUIET: "its full length" }),
];

/** What each property says, and what its violation means. */
const WORDS: Readonly<Record<string, readonly [holds: string, broken: string]>> = {
  woken: ["every live waiter is served", "a live waiter may wait forever"],
  goesOn: ["every live waiter is served in the end", "a live waiter may wait forever"],
  alone: ["no two clients work at the same time", "two may work at the same time"],
};

function isThere(command: string, option: string): boolean {
  return spawnSync(command, [option]).error === undefined;
}

function run(command: string, args: readonly string[], cwd: string): string {
  const { stdout: out, stderr, status, error } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (error !== undefined || status !== 0) throw new Error(`${command} failed: ${error?.message ?? stderr + out}`);
  return out;
}

/** Whether spin finds no error under weak fairness, and the number of stored states. */
function verify({ model, property, defines }: Run): { readonly holds: boolean; readonly states: string } {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-spin-"));
  try {
    run("spin", [...defines, "-a", join(MODELS, `${model}.pml`)], folder);
    run("cc", ["-O2", "-w", "-DNFAIR=3", "-o", "pan", "pan.c"], folder);
    const out = run("./pan", ["-a", "-f", "-m100000", "-N", property], folder);
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
for (const tried of RUNS) {
  const { model, property, what, holds } = tried;
  const found = verify(tried);
  const isExpected = found.holds === holds;
  isFine &&= isExpected;
  const verdict = WORDS[property]?.[found.holds ? 0 : 1];
  stdout.write(`${model}, ${what}: ${verdict}, ${found.states} states${isExpected ? "" : " (UNEXPECTED)"}\n`);
}
exit(isFine ? 0 : 1);
