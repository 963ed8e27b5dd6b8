/** Plays seeds on several servers, counts the results, and reduces and shows failing ones. */
import type { FailoverGrace } from "holdfast/simulation";
import { KINDS } from "../kinds/table.js";
import { count, describeViolations, type Files, type Total, writeRun } from "../report.js";
import { shrunk } from "../shrink.js";
import { type Topology, type TopologyPlan, topologyPlanOf, topologyReduced } from "./plan.js";
import { describeTopologyPlan, runTopology } from "./run.js";

/** The options of such runs. */
export interface TopologyChoice {
  readonly topology: Topology;
  /** The kind of lock, with replicas; absent to alternate. */
  readonly kind: string | undefined;
  readonly grace: FailoverGrace;
  readonly only: ReadonlySet<number> | undefined;
  readonly traces: boolean;
  readonly files: Files;
}

/** Both topologies. */
export const TOPOLOGIES: readonly Topology[] = ["quorum", "replicas"];

/** If both topologies are played, every second seed uses a quorum. */
function kindInTurn(seed: number): string | undefined {
  return KINDS[Math.floor(seed / TOPOLOGIES.length) % KINDS.length]?.name;
}

/** Plays one seed. @param write  prints it if it fails or if its steps are requested */
export async function playTopology(
  seed: number,
  choice: TopologyChoice,
  total: Total,
  write: (text: string) => void,
  isOnly: boolean,
): Promise<void> {
  const { topology, kind, grace, only, traces, files } = choice;
  const whole = topologyPlanOf(seed, topology, topology === "quorum" ? undefined : (kind ?? kindInTurn(seed)));
  const plan = only === undefined ? whole : topologyReduced(whole, only);
  const verdict = await runTopology(plan, { grace }, traces);
  // A quorum has only one kind of lock.
  const named = { ...plan, kind: topology === "quorum" ? topology : `${plan.kind}, replicas` };
  count(total, named, verdict);
  total.excused += verdict.excused.length;
  if (traces) write(`${describeTopologyPlan(plan)}\n\n${verdict.trace.join("\n")}\n`);
  const isFailed = verdict.violations.length > 0;
  if (isOnly || (isFailed && total.failed === 1)) writeRun(named, verdict, files);
  if (!isFailed) return;
  write(`seed ${seed} (${topology}):\n${describeViolations(verdict)}`);
  if (!traces && total.failed === 1) write(await describeSmallest(plan, grace));
}

/** The smallest form of a run that fails in the same way, step by step, with instructions to play it. */
async function describeSmallest(plan: TopologyPlan, grace: FailoverGrace): Promise<string> {
  const small = await shrunk(
    plan,
    [...plan.sessions, ...plan.strikes].map(({ id }) => id),
    topologyReduced,
    async (part) => (await runTopology(part, { grace })).violations,
  );
  const verdict = await runTopology(small, { grace }, true);
  const ids = [...small.sessions, ...small.strikes].map(({ id }) => id);
  const kind = plan.topology === "quorum" ? "" : ` --kind ${plan.kind}`;
  const replay = `--topology ${plan.topology}${kind} --grace ${grace} --seed ${plan.seed} --only ${ids.join(",")} --trace`;
  return (
    `\n${describeTopologyPlan(small)}\n\n${verdict.trace.join("\n")}\n\n${describeViolations(verdict)}` +
    `Replay: node verify/dist/simulation/main.js ${replay}\n`
  );
}
