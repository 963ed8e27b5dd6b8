/**
 * Searches worlds by hand.
 *
 *     node verify/dist/search/main.js [--world W1] [--bound small|large] [--states 2000000]
 *     node verify/dist/search/main.js --rules
 *     node verify/dist/search/main.js --write-docs
 */
import { readFileSync, writeFileSync } from "node:fs";
import { exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Judged, ruleTable, withTable } from "./document.js";
import { searchWith, searchWithout, searchWorld } from "./judge.js";
import { RULES } from "./rules.js";
import { type Bound, WORLDS } from "./worlds.js";

const { values } = parseArgs({
  options: {
    world: { type: "string" },
    bound: { type: "string", default: "small" },
    states: { type: "string", default: "2000000" },
    rules: { type: "boolean", default: false },
    "write-docs": { type: "boolean", default: false },
  },
});

function say(line: string): void {
  stdout.write(`${line}\n`);
}

async function worlds(bound: Bound, maxStates: number, wanted: string | undefined): Promise<boolean> {
  let isFine = true;
  for (const setting of WORLDS.filter(({ id }) => wanted === undefined || id === wanted)) {
    say(`${setting.id}: ${setting.what} (${setting.bounds[bound]})`);
    const beganMs = performance.now();
    const { verdict, violation, trace, states, steps } = await searchWorld(setting, bound, maxStates);
    const seconds = ((performance.now() - beganMs) / 1000).toFixed(1);
    say(`  ${verdict}: ${states} states, ${steps} steps, ${seconds} s`);
    if (violation !== undefined) {
      for (const [i, step] of trace.entries()) say(`  ${i + 1}. ${step}`);
      say(`  ${violation}`);
      isFine = false;
    }
  }
  return isFine;
}

async function rules(): Promise<Judged[]> {
  const judged: Judged[] = [];
  for (const rule of RULES) {
    const explored = await searchWithout(rule);
    const control = await searchWith(rule, explored.states);
    if (control.violation !== undefined) throw new Error(`${rule.id} holds, and yet: ${control.violation}`);
    judged.push({ rule, explored });
    say(
      `without ${rule.id}: ${explored.violation ?? "NOT FOUND"} (${explored.trace.length} steps, ${explored.states} states)`,
    );
  }
  return judged;
}

if (values["write-docs"] || values.rules) {
  const judged = await rules();
  if (values["write-docs"]) {
    const path = fileURLToPath(new URL("../../../docs/verification.md", import.meta.url));
    writeFileSync(path, withTable(readFileSync(path, "utf8"), ruleTable(judged)));
  }
  exit(judged.every(({ explored }) => explored.verdict === "violated") ? 0 : 1);
}
if (values.bound !== "small" && values.bound !== "large") throw new RangeError("--bound is small or large");
exit((await worlds(values.bound, Number(values.states), values.world)) ? 0 : 1);
