/** Searches failovers with all rules and without each rule; see `--help`. The last line is `N passed, N failed`. */
import { exit, stdout } from "node:process";
import { parseArgs } from "node:util";
import { CLUSTER_CASES, CLUSTER_WORLDS, searchCluster, searchClusterWithout } from "./cluster-rules.js";
import type { Explored } from "./explore.js";
import { FAILOVER_CASES, FAILOVER_WORLDS, searchFailover, searchFailoverWithout } from "./failover-rules.js";

const USAGE = `node verify/dist/search/failover-main.js [options]

  --world L1,K2     only these worlds, with one server (L) or a cluster (K) (all)
  --rules           only the rules, no worlds
  --states 3000000  a search with more states stops
`;

const { values } = parseArgs({
  options: {
    world: { type: "string" },
    rules: { type: "boolean", default: false },
    states: { type: "string", default: "3000000" },
    help: { type: "boolean", default: false },
  },
});

function say(line: string): void {
  stdout.write(`${line}\n`);
}

function report({ verdict, violation, states, trace }: Explored): void {
  say(`  ${violation ?? verdict}: ${states} states`);
  for (const [i, step] of trace.entries()) say(`  ${i + 1}. ${step}`);
}

async function main(): Promise<number> {
  if (values.help) {
    stdout.write(USAGE);
    return 0;
  }
  const maxStates = Number(values.states);
  const wanted = values.world?.split(",");
  let failed = 0;
  let passed = 0;
  const judge = (isRight: boolean): void => {
    if (isRight) passed += 1;
    else failed += 1;
  };
  const worlds = [
    ...FAILOVER_WORLDS.map((world) => ({ ...world, search: () => searchFailover(world.setting, maxStates) })),
    ...CLUSTER_WORLDS.map((world) => ({ ...world, search: () => searchCluster(world.setting, maxStates) })),
  ];
  for (const { id, what, search } of values.rules ? [] : worlds) {
    if (wanted !== undefined && !wanted.includes(id)) continue;
    say(`${id}: ${what}`);
    const explored = await search();
    report(explored);
    judge(explored.verdict === "holds");
  }
  const cases = [
    ...FAILOVER_CASES.map((one) => ({ ...one, search: () => searchFailoverWithout(one, maxStates) })),
    ...CLUSTER_CASES.map((one) => ({
      ...one,
      id: `${one.id} in a cluster`,
      search: () => searchClusterWithout(one, maxStates),
    })),
  ];
  for (const { id, what, search } of wanted === undefined ? cases : []) {
    say(`without ${id}: ${what}`);
    const explored = await search();
    report(explored);
    judge(explored.violation !== undefined);
    if (explored.violation === undefined) say("  FAILED: nothing was found");
  }
  say(`${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

exit(await main());
