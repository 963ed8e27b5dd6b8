/** Searches worlds, with all rules and without single rules; see `--help`. The last line is `N passed, N failed`. */
import { readFileSync, writeFileSync } from "node:fs";
import { exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { howFar, type Judged, type Row, ruleTable, statesIn, withTable } from "./document.js";
import { searchWith, searchWithout, searchWorld } from "./judge.js";
import { FAR_STATES, statesFor } from "./reach.js";
import type { Rule } from "./rule.js";
import { RULES } from "./rules.js";
import { type Bound, WORLDS } from "./worlds.js";

const USAGE = `node verify/dist/search/main.js [options]

  --world W1,W2        only these worlds, and no rules (all worlds)
  --bound small|large  the size of the worlds (small)
  --states 2000000     a search with more states stops as capped
  --rules              every rule: a violation must be found without it, and none with it; no worlds
  --quick              the worlds, and the rules whose absence is found within ${FAR_STATES} states
  --all                the worlds, and every rule
  --rule ID,ID         only these rules, with the shortest path to a violation without each of them; no worlds
  --check-docs         the documents in verify/docs/ must match the results; alone, it implies --all
  --write-docs         like --rules, and writes the table in verify/docs/search-missed-rules.md
  --json FILE          writes the results for the report
`;

const { values } = parseArgs({
  options: {
    world: { type: "string" },
    bound: { type: "string", default: "small" },
    states: { type: "string", default: "2000000" },
    rules: { type: "boolean", default: false },
    rule: { type: "string" },
    quick: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    "check-docs": { type: "boolean", default: false },
    "write-docs": { type: "boolean", default: false },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

const DOCS = new URL("../../docs/", import.meta.url);
const WORLDS_DOCUMENT = fileURLToPath(new URL("search.md", DOCS));
const RULES_DOCUMENT = fileURLToPath(new URL("search-missed-rules.md", DOCS));
/** The maximum number of states for the search with the rule; it is at most that of the search without the rule. */
const CONTROL_STATES = 50_000;

const rows: Row[] = [];
const ran: Parameters<typeof howFar>[0][number][] = [];
const wrong: string[] = [];

function say(line: string): void {
  stdout.write(`${line}\n`);
}

function fail(why: string): void {
  wrong.push(why);
  say(`  FAILED: ${why}`);
}

async function worlds(bound: Bound, maxStates: number, wanted: readonly string[] | undefined): Promise<void> {
  for (const setting of WORLDS.filter(({ id }) => wanted === undefined || wanted.includes(id))) {
    const { id, what, bounds } = setting;
    say(`${id}: ${what} (${bounds[bound].text})`);
    const beganMs = performance.now();
    const { verdict, violation, trace, states, steps } = await searchWorld(setting, bound, maxStates);
    say(`  ${verdict}: ${states} states, ${steps} steps, ${((performance.now() - beganMs) / 1_000).toFixed(1)} s`);
    rows.push([id, what, bounds[bound].text, violation ?? verdict, String(states)]);
    ran.push({ id, verdict, states });
    for (const [i, step] of trace.entries()) say(`  ${i + 1}. ${step}`);
    // A small world must be searched completely, as the documents say.
    if (violation !== undefined) fail(`${id}: ${violation}`);
    else if (verdict === "capped" && bound === "small") fail(`${id} has more than ${maxStates} states`);
  }
}

/** The rules with these ids. @throws RangeError  unknown id */
function rulesNamed(ids: readonly string[]): Rule[] {
  return ids.map((id) => {
    const rule = RULES.find((each) => each.id === id);
    if (rule === undefined) throw new RangeError(`there is no rule ${id}: ${RULES.map((each) => each.id).join(", ")}`);
    return rule;
  });
}

async function rules(wanted: readonly Rule[], hasTraces: boolean): Promise<Judged[]> {
  const judged: Judged[] = [];
  for (const rule of wanted) {
    const explored = await searchWithout(rule, statesFor(rule));
    const { violation, trace, states } = explored;
    say(`without ${rule.id}: ${violation ?? "NOT FOUND"} (${trace.length} steps, ${states} states)`);
    if (hasTraces) for (const [i, step] of trace.entries()) say(`  ${i + 1}. ${step}`);
    rows.push([rule.world, `without ${rule.id}`, "of the rule", violation ?? "not found", String(states)]);
    const control = await searchWith(rule, Math.min(states, CONTROL_STATES));
    if (violation === undefined) fail(`nothing is found without ${rule.id} in ${states} states`);
    else if (control.violation !== undefined) fail(`${rule.id} is on, but still: ${control.violation}`);
    judged.push({ rule, explored });
  }
  return judged;
}

/** Reports where the documents differ from the results. */
function check(judged: readonly Judged[] | undefined): void {
  const document = readFileSync(WORLDS_DOCUMENT, "utf8");
  for (const [id, , bound, verdict, states] of rows.filter(([, what]) => !what.startsWith("without "))) {
    const known = statesIn(document, id, bound);
    // The number of states of a capped search depends on the user's options.
    if (known !== undefined && known !== states && verdict !== "capped")
      fail(`verify/docs/search.md gives ${id} ${known} states, not ${states}`);
    if (known === undefined && verdict === "holds") fail(`verify/docs/search.md does not name ${id}, ${bound}`);
  }
  if (judged === undefined) return;
  const missed = readFileSync(RULES_DOCUMENT, "utf8");
  if (withTable(missed, ruleTable(judged)) !== missed)
    fail("verify/docs/search-missed-rules.md does not match the results: run with --write-docs");
}

async function main(): Promise<number> {
  const { bound, world, states, json, quick, all, rule, "write-docs": isWriting, "check-docs": isChecking } = values;
  if (values.help) {
    stdout.write(USAGE);
    return 0;
  }
  if (bound !== "small" && bound !== "large") throw new RangeError("--bound is small or large");
  const beganMs = performance.now();
  const isWhole = all || (isChecking && !values.rules && !isWriting);
  const hasEveryRule = isWhole || values.rules || isWriting;
  if (isWhole || !(hasEveryRule || rule !== undefined)) await worlds(bound, Number(states), world?.split(","));
  const near = quick ? RULES.filter((each) => statesFor(each) <= FAR_STATES) : [];
  const wanted = hasEveryRule ? RULES : rule === undefined ? near : rulesNamed(rule.split(","));
  const judged = await rules(wanted, rule !== undefined);
  if (isWriting) {
    const document = readFileSync(RULES_DOCUMENT, "utf8");
    writeFileSync(RULES_DOCUMENT, withTable(document, ruleTable(judged)));
  }
  if (isChecking) check(hasEveryRule ? judged : undefined);
  const failed = wrong.length;
  const passed = Math.max(0, rows.length - failed);
  const tookMs = Math.round(performance.now() - beganMs);
  const columns = ["world", "what", "bound", "verdict", "states"];
  const far = howFar(ran);
  const facts = { "worlds searched to their end": far.ended.length, "worlds given up as capped": far.capped.length };
  const result = { part: "search", title: "Worlds searched", passed, failed, tookMs, facts, columns, rows, wrong };
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(result, null, 2)}\n`);
  if (ran.length > 0) say(`searched completely: ${far.ended.join(", ") || "none"}`);
  if (far.capped.length > 0) say(`NOT searched completely; no violation so far: ${far.capped.join(", ")}`);
  say(`${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

exit(await main());
