/**
 * Examines servers: reads the facts about every node, and runs every check on them. `holdfast doctor` prints the
 * findings, and the console shows them.
 */
import { formatMs } from "../frame/durations.js";
import { type Check, type Examination, type Finding, type SeenDeadlocks, skipped, type Verdict } from "./check.js";
import { replicasIn } from "./checks/failover.js";
import type { FactFamily, NodeFacts, Topology } from "./facts.js";
import { type ReadOptions, readNode } from "./read/node.js";
import { CHECKS } from "./table.js";
import { beside, type Target } from "./target.js";

/** What to examine, and how long that may take. */
export interface ExamineOptions {
  readonly topology: Topology;
  /** The key prefix that the programs use. @default "hf" */
  readonly prefix?: string;
  /** Ids of the checks to run. @default all */
  readonly only?: readonly string[];
  /** The shortest lease in use, in ms. Replies must arrive in time to renew it. @default 30_000 */
  readonly leaseMs?: number;
  /** Time limit for reading one node, in ms. Facts that have not arrived by then are `unknown`. @default 5_000 */
  readonly forMs?: number;
  /** Reads which clients wait for each other. @default the check is skipped */
  readonly readDeadlocks?: () => Promise<SeenDeadlocks>;
  /** @default 5_000 */
  readonly connectTimeoutMs?: number;
  /** @default 2_000 */
  readonly commandTimeoutMs?: number;
}

/** None of the servers answers, so no check can run. The message contains the error of each server. */
export class NobodyAnswersError extends Error {
  override readonly name = "NobodyAnswersError";
}

/**
 * Examines all targets and the replicas that they report.
 *
 * On each server, writes one probe key below the prefix, deletes it at the end, and publishes to one probe channel.
 * Opens separate connections. Takes at most about `forMs`, or twice as long if there are replicas.
 *
 * @returns the findings in the order of the checks, and for each check in the order of the nodes. A node that does not
 *          answer gets a finding of `role`
 * @throws NobodyAnswersError  none of the targets answers
 */
export async function examine(targets: readonly Target[], options: ExamineOptions): Promise<readonly Finding[]> {
  const { topology, prefix = "hf", only, leaseMs = 30_000, forMs = 5_000 } = options;
  const checks = only === undefined ? CHECKS : CHECKS.filter(({ id }) => only.includes(id));
  const families = new Set(checks.flatMap(({ families: needed }): readonly FactFamily[] => needed));
  const { connectTimeoutMs = 5_000, commandTimeoutMs = 2_000 } = options;
  const reading: ReadOptions = { prefix, topology, families, connectTimeoutMs, commandTimeoutMs, forMs };
  const { readDeadlocks } = options;
  const isAsked = readDeadlocks !== undefined && checks.some(({ id }) => id === "deadlocks");
  const [nodes, deadlocks] = await Promise.all([
    readAll(targets, reading),
    isAsked ? within(readDeadlocks(), forMs) : undefined,
  ]);
  return judge(nodes, { leaseMs, prefix, checks, deadlocks });
}

/** Returns what was read in time, or why nothing was read. Never rejects. */
async function within(reading: Promise<SeenDeadlocks>, forMs: number): Promise<SeenDeadlocks> {
  const late = new Promise<SeenDeadlocks>((resolve) => {
    setTimeout(() => resolve({ error: `no reply within ${formatMs(forMs)}` }), forMs).unref();
  });
  const failed = (error: unknown): SeenDeadlocks => ({ error: error instanceof Error ? error.message : String(error) });
  return await Promise.race([reading.catch(failed), late]);
}

async function readAll(targets: readonly Target[], reading: ReadOptions): Promise<readonly NodeFacts[]> {
  const given = await Promise.all(targets.map((target) => readNode(target, reading)));
  const silent = given.flatMap(({ node, unreachable }) =>
    unreachable === undefined ? [] : [`${node}: ${unreachable}`],
  );
  if (silent.length === given.length) throw new NobodyAnswersError(`no server replies: ${silent.join("; ")}`);
  const known = new Set(targets.map(({ node }) => node));
  const met = targets.flatMap((target, at) =>
    replicasIn(given[at]?.info ?? new Map()).flatMap(({ host, port, address }) => {
      if (known.has(address)) return [];
      known.add(address);
      return [beside(target, host, port)];
    }),
  );
  const others = await Promise.all(met.map((target) => readNode(target, reading)));
  // One server may have several addresses, so compare the ids of the server processes.
  const runs = new Set(given.flatMap(({ info }) => info.get("run_id") ?? []));
  return [...given, ...others.filter(({ info }) => !runs.has(info.get("run_id") ?? ""))];
}

/**
 * Applies the checks to facts that were already read. Sends no requests.
 *
 * @param checks  @default all
 */
export function judge(
  nodes: readonly NodeFacts[],
  {
    leaseMs = 30_000,
    prefix = "hf",
    checks = CHECKS,
    deadlocks,
  }: {
    leaseMs?: number;
    prefix?: string;
    checks?: readonly Check[];
    deadlocks?: SeenDeadlocks | undefined;
  } = {},
): readonly Finding[] {
  const examination: Examination = { leaseMs, prefix, nodes, deadlocks };
  return checks.flatMap((check) =>
    nodes.flatMap((facts) => verdictsOn(check, facts, examination).map((verdict) => findingOf(check, facts, verdict))),
  );
}

function verdictsOn(check: Check, facts: NodeFacts, examination: Examination): readonly Verdict[] {
  const isAway = facts.unreachable !== undefined && check.id !== "role";
  return isAway ? skipped("the node does not reply: see role") : check.run(facts, examination);
}

function findingOf(check: Check, { node }: NodeFacts, verdict: Verdict): Finding {
  const { status, severity = "info", measured } = verdict;
  const isFinding = status === "finding";
  return {
    id: check.id,
    node: verdict.node ?? node,
    severity,
    status,
    measured,
    risk: isFinding ? (verdict.risk ?? check.risk) : "",
    fix: verdict.fix ?? (isFinding ? check.fix : ""),
  };
}
