/** The command that plays seeds and shows each failure in its smallest form. */
import { writeFileSync } from "node:fs";
import process, { argv, exit, stdout } from "node:process";
import { parseArgs } from "node:util";
import { choose, type Choice as Faults, PROFILES } from "./choose.js";
import { playInJobs, type Word } from "./jobs.js";
import { profileNameOf } from "./kills.js";
import { KINDS } from "./kinds/table.js";
import { reduced } from "./plan.js";
import { count, describeSmallest, describeViolations, emptyTotal, type Files, type Total, writeRun } from "./report.js";
import { describePlan, runPlan } from "./run.js";
import { playTopology, TOPOLOGIES } from "./topologies/play.js";

const USAGE = `node verify/dist/simulation/main.js [--seed N | --seeds A..B] [--kind KIND] [--profile PROFILE]
  --only 1,2,3    only these sessions and faults of the seed
  --trace         prints each step of each run
  --jobs N        N processes, each with its part of the seeds
  --topology T    several servers: quorum (a lock on three or five), replicas (any kind, on a master with failovers), or
                  both; not with --profile
  --grace MODE    auto (by default) or off, with replicas
  --json FILE     writes the numbers as JSON
  --history FILE  writes the records of the first failing run, or of the only run
  --picture FILE  draws the same run as SVG
kinds: ${KINDS.map(({ name }) => name).join(", ")}; by default they rotate
profiles: ${PROFILES.join(", ")}; by default one seed in eight has no faults, one in eight a server that forgets,
  one in eight only kills, one in eight only stalls, one in eight releases in the background, one in sixteen a server's clock
  that is set forward, and for read-write locks one in sixteen steals`;

/** The number of failed seeds after which it stops. */
const FAILED_MAX = 10;
const SEEDS_PER_WORD = 500;

interface Choice {
  readonly kind: string | undefined;
  readonly profile: Faults | undefined;
  readonly only: string | undefined;
  readonly topology: string | undefined;
  readonly grace: "auto" | "off";
  readonly traces: boolean;
  readonly files: Files;
}

/** Plays seeds in this process. */
async function play(first: number, last: number, choice: Choice, onTotal: (total: Total) => void): Promise<Total> {
  const total = emptyTotal();
  for (let seed = first; seed <= last && total.failed < FAILED_MAX; seed += 1) {
    if (choice.topology !== undefined) {
      await playOnSeveral(seed, choice, total, first === last);
      if (total.seeds % SEEDS_PER_WORD === 0) onTotal(total);
      continue;
    }
    const whole = choose(seed, choice.kind, choice.profile);
    const plan = choice.only === undefined ? whole : reduced(whole, new Set(choice.only.split(",").map(Number)));
    const verdict = await runPlan(plan, {}, choice.traces);
    count(total, plan, verdict);
    if (choice.traces) write(`${describePlan(plan)}\n\n${verdict.trace.join("\n")}\n`);
    const isFailed = verdict.violations.length > 0;
    if (first === last || (isFailed && total.failed === 1)) writeRun(plan, verdict, choice.files);
    if (isFailed) write(`seed ${seed} (${plan.kind}, ${profileNameOf(plan)}):\n${describeViolations(verdict)}`);
    if (isFailed && !choice.traces && total.failed === 1) write(await describeSmallest(plan));
    if (total.seeds % SEEDS_PER_WORD === 0) onTotal(total);
  }
  onTotal(total);
  return total;
}

/** Plays a seed on several servers. With "both", the topologies alternate. */
async function playOnSeveral(seed: number, choice: Choice, total: Total, isOnly: boolean): Promise<void> {
  const { topology, kind, grace, only, traces, files } = choice;
  const chosen = TOPOLOGIES.find((each) => each === topology) ?? TOPOLOGIES[seed % TOPOLOGIES.length];
  if (chosen === undefined) return;
  const ids = only === undefined ? undefined : new Set(only.split(",").map(Number));
  await playTopology(seed, { topology: chosen, kind, grace, only: ids, traces, files }, total, write, isOnly);
}

function write(text: string): void {
  if (process.send === undefined) stdout.write(text);
  else tell({ text });
}

function tell(word: Word): void {
  process.send?.(word);
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: argv.slice(2),
    options: {
      seed: { type: "string" },
      seeds: { type: "string" },
      kind: { type: "string" },
      profile: { type: "string" },
      only: { type: "string" },
      topology: { type: "string" },
      grace: { type: "string", default: "auto" },
      trace: { type: "boolean" },
      jobs: { type: "string" },
      json: { type: "string" },
      history: { type: "string" },
      picture: { type: "string" },
      help: { type: "boolean" },
    },
  });
  const { kind, only, json, profile, history, picture, topology, grace, jobs = "1", trace: traces = false } = values;
  const [first = 1, last = first] = (values.seed ?? values.seeds ?? "1..2000").split("..").map(Number);
  const isWrong =
    (profile !== undefined && !PROFILES.includes(profile as Faults)) ||
    (topology !== undefined && ![...TOPOLOGIES, "both"].includes(topology)) ||
    (grace !== "auto" && grace !== "off") ||
    !(first <= last && +jobs >= 1);
  if (values.help === true || isWrong) {
    stdout.write(`${USAGE}\n`);
    return values.help === true ? 0 : 2;
  }
  const startedMs = performance.now();
  const rate = (total: Total): number => Math.round((total.seeds / (performance.now() - startedMs)) * 60_000);
  const all = last - first + 1;
  const progress = (total: Total): void => {
    if (process.send !== undefined) tell({ total });
    else stdout.write(`${total.seeds} of ${all} seeds, ${total.failed} failed, ${rate(total)} a minute\n`);
  };
  const choice: Choice = {
    kind,
    profile: profile as Faults | undefined,
    only,
    topology,
    grace: grace === "off" ? "off" : "auto",
    traces,
    files: { history, picture },
  };
  const forwarded = Object.entries({ kind, profile, history, picture, topology, grace }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, value],
  );
  const total =
    +jobs > 1
      ? await playInJobs({ first, last }, +jobs, forwarded, write, progress)
      : await play(first, last, choice, progress);
  const seedsPerMinute = rate(total);
  if (json !== undefined) writeFileSync(json, `${JSON.stringify({ ...total, seedsPerMinute }, undefined, 2)}\n`);
  if (process.send === undefined) {
    const { seeds, grants, events, operations, failed, unknown } = total;
    const checked = Object.entries(total.checked).map(([property, cases]) => `${property} ${cases}`);
    stdout.write(`cases decided: ${checked.join(", ")}\n`);
    stdout.write(`${grants} grants, ${operations} operations, ${events} events, ${unknown} unknown; `);
    if (total.excused > 0) stdout.write(`${total.excused} violations of what is not promised; `);
    stdout.write(`${seedsPerMinute} seeds a minute\n${seeds - failed} passed, ${failed} failed\n`);
  }
  return total.failed > 0 ? 1 : 0;
}

const code = await main();
process.disconnect?.();
exit(code);
