/**
 * npm run verify:failovers: kills masters that have made grants their replicas never received. For its options, see
 * options.ts.
 */
import { writeFileSync } from "node:fs";
import { argv, exit, stdout } from "node:process";
import { chanceOf } from "./chance.js";
import { startCrew } from "./crew.js";
import { judge, type Sums } from "./judge.js";
import { HELP, type Options, optionsOf } from "./options.js";
import { type Failover, failOver } from "./round.js";
import { clusterStage, sentinelStage } from "./stage.js";

/** The conditions that the sums of a successful run must meet. @returns the violated ones */
function complaints({ grace }: Options, sums: Sums): string[] {
  const found: string[] = [];
  if (sums.withTwoMasters > sums.failovers / 10) found.push("two servers were masters at the same time too often");
  if (sums.withLostWrites < sums.failovers) found.push("in some failovers nothing was lost");
  if (sums.lostGrants === 0) found.push("no grant of a running lease was lost: the run shows nothing");
  if (sums.stuck > 0) found.push("some locks were never granted again");
  if (sums.errors > 0) found.push("some callers failed, or processes ended");
  if (grace === "off") {
    if (sums.doubleGrants === 0)
      found.push("no lock was granted twice, although the grace is off: the run has no teeth");
    return found;
  }
  if (sums.doubleGrants > 0) found.push("locks were granted twice");
  if (sums.tokensThatFell > 0) found.push("tokens did not rise");
  if (sums.refused + sums.lostThoughKnown > 0) found.push("holders lost leases that were valid");
  if (sums.reclaimed === 0) found.push("no holder kept a lease that the failover had lost");
  return found;
}

/** The result in the format of the report (verify/README.md). */
interface Result {
  readonly part: string;
  readonly title: string;
  readonly passed: number;
  readonly failed: number;
  readonly tookMs: number;
  readonly facts: Readonly<Record<string, number>>;
}

async function play(topology: Options["topologies"][number], options: Options): Promise<Result> {
  const beganAtMs = performance.now();
  const stage = await (topology === "cluster" ? clusterStage() : sentinelStage());
  const failovers: Failover[] = [];
  let failure: unknown;
  const crew = startCrew(stage, options);
  try {
    const chance = chanceOf(options.seed);
    for (let i = 1; i <= options.count; i += 1) {
      failovers.push(await failOver(stage, crew, chance, options.leaseMs));
      const line = `${topology}, grace ${options.grace}: failover ${i} of ${options.count}`;
      if (stdout.isTTY) stdout.write(`\r${line}`);
      else if (i % 10 === 0) console.log(line);
    }
    if (stdout.isTTY) stdout.write("\n");
  } catch (error) {
    failure = error;
  }
  await crew.stop();
  await stage.stop();
  const sums = judge(crew, failovers, options.leaseMs, options.grace === "auto");
  const found = complaints(options, sums);
  if (failure !== undefined) found.push(`the run did not end: ${String(failure)}`);
  const { messages, ...figures } = sums;
  const tookS = Math.round((performance.now() - beganAtMs) / 1_000);
  console.log(`${topology}, grace ${options.grace}, seed ${options.seed}, leases of ${options.leaseMs} ms, ${tookS} s`);
  for (const [name, value] of Object.entries(figures)) console.log(`  ${name}: ${Math.round(value)}`);
  for (const message of options.grace === "auto" ? messages.slice(0, 20) : messages.slice(0, 3))
    console.log(`  ${message}`);
  for (const complaint of found) console.log(`  FAILED: ${complaint}`);
  return {
    part: "failovers",
    title: `Failovers, ${topology}, grace ${options.grace}`,
    passed: found.length === 0 ? 1 : 0,
    failed: found.length === 0 ? 0 : 1,
    tookMs: Math.round(performance.now() - beganAtMs),
    facts: { seed: options.seed, leaseMs: options.leaseMs, ...figures },
  };
}

const options = optionsOf(argv.slice(2));
if (options === "help") {
  console.log(HELP);
  exit(0);
}
const results: Result[] = [];
for (const topology of options.topologies) results.push(await play(topology, options));
if (options.json !== undefined) writeFileSync(options.json, JSON.stringify(results));
const passed = results.reduce((sum, result) => sum + result.passed, 0);
console.log(`${passed} passed, ${results.length - passed} failed`);
exit(passed === results.length ? 0 : 1);
