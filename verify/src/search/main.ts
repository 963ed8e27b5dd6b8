/**
 * Searches worlds by hand.
 *
 *     node verify/dist/search/main.js [--world W1] [--bound small|large] [--states 2000000] [--json FILE]
 *     node verify/dist/search/main.js --rules [--json FILE]
 *     node verify/dist/search/main.js --write-docs
 */
import { readFileSync, writeFileSync } from "node:fs";
import { exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Judged, ruleTable, withTable } from "./document.js";
import type { Explored } from "./explore.js";
import { searchWith, searchWithout, searchWorld } from "./judge.js";
import { RULES } from "./rules.js";
import { type Bound, WORLDS } from "./worlds.js";

const { values } = parseArgs({
  options: {
    world: { type: "string" },
    bound: { type: "string", default: "small" },
    states: { type: "string", default: "2000000" },
    json: { type: "string" },
    rules: { type: "boolean", default: false },
    "write-docs": { type: "boolean", default: false },
  },
});

/** What came of one search, for programs. */
interface Result {
  readonly world: string;
  readonly bound: string;
  readonly clients: number;
  readonly states: number;
  readonly verdict: Explored["verdict"];
  readonly violation?: string;
  /** The rule that was switched off, if one was. */
  readonly rule?: string;
  readonly steps?: readonly string[];
}

/** How far the same world is searched with the rule. */
const CONTROL_STATES = 50_000;

const results: Result[] = [];

function keep(
  about: Pick<Result, "world" | "bound" | "clients" | "rule">,
  { verdict, violation, trace, states }: Explored,
): void {
  results.push({
    ...about,
    states,
    verdict,
    ...(violation === undefined ? {} : { violation, steps: trace }),
  });
}

/** Writes what came of it, if that is wanted, and ends with success or not. */
function end(isFine: boolean): never {
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results, null, 2)}\n`);
  exit(isFine ? 0 : 1);
}

function say(line: string): void {
  stdout.write(`${line}\n`);
}

async function worlds(bound: Bound, maxStates: number, wanted: string | undefined): Promise<boolean> {
  let isFine = true;
  for (const setting of WORLDS.filter(({ id }) => wanted === undefined || id === wanted)) {
    say(`${setting.id}: ${setting.what} (${setting.bounds[bound].text})`);
    const beganMs = performance.now();
    const explored = await searchWorld(setting, bound, maxStates);
    const { verdict, violation, trace, states, steps } = explored;
    const { text, setting: limited } = setting.bounds[bound];
    keep({ world: setting.id, bound: text, clients: limited.clients.length }, explored);
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
    const control = await searchWith(rule, Math.min(explored.states, CONTROL_STATES));
    if (control.violation !== undefined) throw new Error(`${rule.id} holds, and yet: ${control.violation}`);
    judged.push({ rule, explored });
    keep({ world: rule.world, bound: "rule", clients: rule.setting.clients.length, rule: rule.id }, explored);
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
  end(judged.every(({ explored }) => explored.verdict === "violated"));
}
if (values.bound !== "small" && values.bound !== "large") throw new RangeError("--bound is small or large");
end(await worlds(values.bound, Number(values.states), values.world));
