/**
 * How the speed of free locks depends on the number of masters of a cluster, with one client process and with two.
 *
 * It should grow until the client is the limit. Where that is depends on the cost of a pair for client and server, so both
 * costs are measured. If client and masters share the cores of one machine, the cores are exhausted long before.
 */
import { startCluster } from "../cluster.js";
import type { Conditions } from "../measurements/entry.js";
import { type Server, stopAll } from "../server.js";
import { costsOf, isDisturbed, kneeOf, type Load, limitOf, threeDigits } from "./bend.js";
import { middle, type PairsLoad, runPairs } from "./loads.js";
import type { Curve } from "./report.js";
import type { OnRun } from "./throughput.js";

const MASTERS = [1, 2, 3, 4, 6];
const CONTESTANTS = ["holdfast", "raw"];
const PROCESSES = [1, 2];
/** Enough in parallel to keep six masters busy. */
const PARALLEL_PER_PROCESS = 128;
const US_PER_SECOND = 1e6;
/** A smaller ratio counts as no change, because the machine is never quite idle. */
const SAME = 1.25;

/** The measurement with one number of masters. */
export interface MastersLoad extends PairsLoad, Load {}

/** One contestant with a number of client processes: a load for each number of masters. */
export interface MastersLine {
  readonly name: string;
  readonly processes: number;
  readonly loads: readonly MastersLoad[];
}

/** In each repetition, starts a cluster for each number of masters and runs all contestants on it. */
export async function mastersCurve(conditions: Conditions, cores: number, onRun: OnRun): Promise<Curve> {
  const all = PROCESSES.flatMap((processes) => CONTESTANTS.map((name) => ({ name, processes })));
  const runs = new Map(all.map((line) => [line, MASTERS.map((): MastersLoad[] => [])]));
  for (let repetition = 0; repetition < conditions.repetitions; repetition += 1)
    for (const [place, masters] of MASTERS.entries()) {
      onRun(`masters: ${masters}`);
      // The cluster grants immediately, because no replica of it was promoted.
      const servers = await startCluster(masters);
      try {
        for (const line of all) {
          onRun(`masters: ${masters}, ${lineName(line)}`);
          runs.get(line)?.[place]?.push(await runOn(servers, line, conditions));
        }
      } finally {
        await stopAll(servers);
      }
    }
  const lines = all.map((line) => ({ ...line, loads: (runs.get(line) ?? []).map((loads) => middle(loads)) }));
  return curveOf(lines, cores);
}

async function runOn(
  servers: readonly Server[],
  { name, processes }: Omit<MastersLine, "loads">,
  { connection, seconds }: Conditions,
): Promise<MastersLoad> {
  const inCluster = { ...connection, clusterPorts: servers.map(({ port }) => port) };
  const options = { name, processes, servers, connection: inCluster, parallel: PARALLEL_PER_PROCESS, seconds };
  return { x: servers.length, ...(await runPairs(options)) };
}

/** Makes a curve of these lines, measured on a machine with this number of cores. */
export function curveOf(lines: readonly MastersLine[], cores: number): Curve {
  return {
    name: "masters",
    title: `pairs/s on free locks, by masters of a cluster, ${PARALLEL_PER_PROCESS} callers a process`,
    figures: {
      x: "masters",
      y: "pairs/s",
      columns: [
        "pairs/s",
        "servers, % of a core",
        "callers, % of a core",
        "others, % of a core",
        "servers, µs per pair",
        "callers, µs per pair",
        "reads per pair",
      ],
    },
    lines: lines.map((line) => ({
      name: lineName(line),
      points: line.loads.map((load) => ({ x: load.x, y: load.rate, cells: cellsOf(load) })),
    })),
    sentences: [
      ...lines.map((line) => growthOf(line, cores)),
      ...lines.filter(({ processes }) => processes === 1).map((line) => reachOf(line, cores)),
    ],
  };
}

function cellsOf(load: MastersLoad): string[] {
  const { callersUs, serverUs } = costsOf(load);
  return [
    ...[load.rate, load.serverPercent, load.callersPercent, load.othersPercent].map(whole),
    serverUs.toFixed(1),
    callersUs.toFixed(1),
    load.readsPerPair.toFixed(2),
  ];
}

function lineName({ name, processes }: Omit<MastersLine, "loads">): string {
  return processes === 1 ? name : `${name}, ${processes} processes`;
}

/** Describes the size up to which a line grows, and which resource is the limit there. */
function growthOf(line: MastersLine, cores: number): string {
  const knee = kneeOf(line.loads);
  if (knee === undefined) return `${lineName(line)} grows with the masters up to ${line.loads.at(-1)?.x ?? 0}.`;
  const { before, at } = knee;
  return (
    `${lineName(line)} stops growing with the masters between ${before.x} and ${at.x} ` +
    `(${(at.rate / before.rate).toFixed(2)} × for ${Number((at.x / before.x).toPrecision(3))} × the masters): ${limitOf(at, cores)}.`
  );
}

/** Describes, by the cost of a pair, how far a line could grow if each process had its own core, and how far it can here. */
function reachOf({ name, loads }: MastersLine, cores: number): string {
  const [first] = loads;
  const last = loads.at(-1);
  if (first === undefined || last === undefined) return "";
  const { callersUs, serverUs } = costsOf(first);
  const masters = serverUs / callersUs;
  const kept =
    masters > 1
      ? `one client process can keep ${masters.toFixed(1)} masters busy; with more masters, the client is the limit`
      : `one client process can keep ${masters.toFixed(2)} of a master busy, so it gains nothing from a second master; ` +
        `${(1 / masters).toFixed(1)} processes saturate one master, and only beyond that do more masters help`;
  const here = (load: Load): string => {
    const costs = costsOf(load);
    return threeDigits((cores * US_PER_SECOND) / (costs.callersUs + costs.serverUs));
  };
  return [
    `A pair of ${name} costs the client ${threeDigits(callersUs)} µs of a core and the server ${threeDigits(serverUs)} µs, on one master.`,
    `With a core of its own, a client process could send ${threeDigits(US_PER_SECOND / callersUs)} pairs/s, and a master could serve ${threeDigits(US_PER_SECOND / serverUs)}: ${kept}.`,
    ...dearer(first, last),
    `Clients and masters share ${cores} cores here, which are enough for ${here(first)} pairs/s on one master and ${here(last)} on ${last.x}, however many processes there are.`,
    ...(isDisturbed(first) ? ["The machine was not idle, so all costs appear higher than they are."] : []),
  ].join(" ");
}

/** Explains why a pair costs more on many masters; empty if it does not. */
function dearer(first: MastersLoad, last: MastersLoad): string[] {
  const [few, many] = [costsOf(first), costsOf(last)];
  const growth = (many.callersUs + many.serverUs) / (few.callersUs + few.serverUs);
  if (growth < SAME) return [];
  const costs = `On ${last.x} it costs ${threeDigits(many.callersUs)} and ${threeDigits(many.serverUs)} µs, ${growth.toFixed(2)} × as much in total`;
  if (last.readsPerPair / first.readsPerPair < SAME) return [`${costs}.`];
  return [
    `${costs}: fewer requests arrive together, so servers read ${last.readsPerPair.toFixed(2)} times per pair ` +
      `from their connections instead of ${first.readsPerPair.toFixed(2)} times.`,
  ];
}

function whole(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
}
