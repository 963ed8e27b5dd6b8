/** The command: plays seeds, and shows what fails in the smallest form that still fails. */
import { argv, exit, stdout } from "node:process";
import { parseArgs } from "node:util";
import { KINDS, kindOf } from "./kinds/table.js";
import { type Plan, type Profile, planOf, reduced } from "./plan.js";
import { describePlan, runPlan } from "./run.js";
import { shrink } from "./shrink.js";

const PROFILES: readonly Profile[] = ["none", "promised", "forgets", "clock-forward"];
const USAGE = `node verify/dist/simulation/main.js [--seed N | --seeds A..B] [--kind KIND] [--profile PROFILE] [--only 1,2,3] [--trace]
kinds: ${KINDS.map(({ name }) => name).join(", ")}; by default they take turns
profiles: ${PROFILES.join(", ")}; by default one seed in eight has no faults, and one in eight a server that forgets`;

/** Which kind and which faults a seed gets if the caller does not say. */
function choose(seed: number, kind: string | undefined, profile: string | undefined): Plan {
  const chosen = kind ?? KINDS[seed % KINDS.length]?.name ?? "mutex";
  const turn = Math.floor(seed / KINDS.length) % 8;
  const faults = profile ?? (turn === 0 ? "none" : turn === 1 ? "forgets" : "promised");
  return planOf(seed, kindOf(chosen).name, faults as Profile);
}

async function show(plan: Plan): Promise<void> {
  const small = await shrink(plan);
  const { violations, trace } = await runPlan(small, {}, true);
  const ids = [...small.sessions, ...small.faults].map(({ id }) => id);
  stdout.write(`\n${describePlan(small)}\n\n${trace.join("\n")}\n\n`);
  for (const { property, atMs, text } of violations)
    stdout.write(`VIOLATION ${property} at ${atMs.toFixed(1)} ms: ${text}\n`);
  stdout.write(
    `Replay: node verify/dist/simulation/main.js --seed ${plan.seed} --kind ${plan.kind} --profile ${plan.profile} --only ${ids.join(",")} --trace\n`,
  );
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
      trace: { type: "boolean" },
      help: { type: "boolean" },
    },
  });
  if (values.help === true || (values.profile !== undefined && !PROFILES.includes(values.profile as Profile))) {
    stdout.write(`${USAGE}\n`);
    return values.help === true ? 0 : 2;
  }
  const [first = 1, last = first] = (values.seed ?? values.seeds ?? "1..2000").split("..").map(Number);
  const startedMs = performance.now();
  const total = { seeds: 0, grants: 0, events: 0, failed: 0 };
  for (let seed = first; seed <= last; seed += 1) {
    const whole = choose(seed, values.kind, values.profile);
    const plan = values.only === undefined ? whole : reduced(whole, new Set(values.only.split(",").map(Number)));
    const { violations, grantCount, eventCount, trace } = await runPlan(plan, {}, values.trace);
    if (values.trace === true) stdout.write(`${describePlan(plan)}\n\n${trace.join("\n")}\n`);
    total.seeds += 1;
    total.grants += grantCount;
    total.events += eventCount;
    if (violations.length > 0) {
      total.failed += 1;
      for (const { property, atMs, text } of violations) {
        stdout.write(
          `seed ${seed} (${plan.kind}, ${plan.profile}): VIOLATION ${property} at ${atMs.toFixed(1)} ms: ${text}\n`,
        );
      }
      if (values.trace !== true && total.failed === 1) await show(plan);
      if (total.failed >= 10) break;
    }
    if (total.seeds % 500 === 0) stdout.write(`${total.seeds} of ${last - first + 1} seeds, ${total.failed} failed\n`);
  }
  const minutes = (performance.now() - startedMs) / 60_000;
  stdout.write(
    `${total.seeds} seeds, ${total.grants} grants, ${total.events} events, ${total.failed} failed; ${Math.round(total.seeds / minutes)} seeds a minute\n`,
  );
  return total.failed > 0 ? 1 : 0;
}

exit(await main());
