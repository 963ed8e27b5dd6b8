/** How throughput depends on the number of waiters and of processes. */
import { type CrowdRun, runCrowd } from "../measurements/crowds.js";
import type { Conditions } from "../measurements/entry.js";
import { costOf, fallOf, kneeOf, type Load, limitOf } from "./bend.js";
import { middle, runPairs, shares } from "./loads.js";
import type { Curve } from "./report.js";

const WAITERS = [10, 100, 1_000, 10_000];
const PROCESSES = [1, 2, 4, 8];
const CALLERS_PER_PROCESS = 25;
const PARALLEL_PER_PROCESS = 32;
const OWN = ["holdfast", "holdfast/strict"];

/** Called with a description of what is measured next. */
export type OnRun = (words: string) => void;

/** One name, two processes, more and more waiters. */
export async function waitersCurve(conditions: Conditions, cores: number, onRun: OnRun): Promise<Curve> {
  const lines = await measured(WAITERS, OWN, conditions.repetitions, async (name, waiters) => {
    onRun(`waiters: ${name} ${waiters}`);
    const options = { name, processes: 2, callers: waiters / 2, sectionMs: 0 };
    return crowdLoad(waiters, options.processes, await runCrowd(options, conditions), conditions.seconds);
  });
  return {
    name: "waiters",
    title: "sections/s on one name, by waiters in 2 processes",
    ...table("waiters", "sections/s", lines),
    sentences: lines.map(({ name, loads }) => {
      const fall = fallOf(loads);
      if (fall === undefined) return `${name} keeps its speed up to ${size(loads.at(-1))} waiters.`;
      const { before, at } = fall;
      return (
        `${name} falls to ${(at.rate / before.rate).toFixed(2)} × between ${size(before)} and ${size(at)} waiters: a section ` +
        `costs ${costOf(before)} before, and ${costOf(at)} after; ${limitOf(at, cores)}.`
      );
    }),
  };
}

/** One name, more and more processes. */
export async function processesCurve(conditions: Conditions, cores: number, onRun: OnRun): Promise<Curve> {
  const lines = await measured(PROCESSES, OWN, conditions.repetitions, async (name, processes) => {
    onRun(`processes: ${name} ${processes}`);
    const options = { name, processes, callers: CALLERS_PER_PROCESS, sectionMs: 0 };
    return crowdLoad(processes, processes, await runCrowd(options, conditions), conditions.seconds);
  });
  return {
    name: "processes",
    title: `sections/s on one name, by processes of ${CALLERS_PER_PROCESS} callers`,
    ...table("processes", "sections/s", lines),
    sentences: lines.map(({ name, loads }) => {
      const fall = fallOf(loads);
      if (fall === undefined)
        return `${name} stays above 0.8 × its best rate up to ${size(loads.at(-1))} processes; more processes cannot speed up one name.`;
      const { before, at } = fall;
      return (
        `${name} falls to ${(at.rate / before.rate).toFixed(2)} × between ${size(before)} and ${size(at)} processes: a section ` +
        `costs ${costOf(before)} before, and ${costOf(at)} after; ${limitOf(at, cores)}.`
      );
    }),
  };
}

/** Free locks, more and more processes. */
export async function freeLocksCurve(conditions: Conditions, cores: number, onRun: OnRun): Promise<Curve> {
  const names = ["raw", "holdfast"];
  const lines = await measured(PROCESSES, names, conditions.repetitions, async (name, processes) => {
    onRun(`free locks: ${name} ${processes}`);
    const { connection, server, seconds } = conditions;
    const options = { name, connection, servers: [server], processes, parallel: PARALLEL_PER_PROCESS, seconds };
    return { x: processes, ...(await runPairs(options)) };
  });
  return {
    name: "free-locks",
    title: `pairs/s on free locks, by processes with ${PARALLEL_PER_PROCESS} callers`,
    ...table("processes", "pairs/s", lines),
    sentences: lines.map(({ name, loads }) => {
      const knee = kneeOf(loads);
      if (knee === undefined) return `${name} grows with its processes up to ${size(loads.at(-1))}.`;
      const { before, at } = knee;
      return (
        `${name} stops growing with its processes between ${size(before)} and ${size(at)} ` +
        `(${(at.rate / before.rate).toFixed(2)} × for ${at.x / before.x} × the processes): ${limitOf(at, cores)}.`
      );
    }),
  };
}

interface LoadLine {
  readonly name: string;
  readonly loads: readonly Load[];
}

/** Runs every size with every name once per repetition, and returns the medians. */
async function measured(
  sizes: readonly number[],
  names: readonly string[],
  repetitions: number,
  run: (name: string, x: number) => Promise<Load>,
): Promise<readonly LoadLine[]> {
  const runs = new Map<string, Load[]>();
  for (let repetition = 0; repetition < repetitions; repetition += 1)
    for (const x of sizes)
      for (const name of names) {
        const key = `${name} ${x}`;
        runs.set(key, [...(runs.get(key) ?? []), await run(name, x)]);
      }
  return names.map((name) => ({ name, loads: sizes.map((x) => middle(runs.get(`${name} ${x}`) ?? [])) }));
}

function crowdLoad(
  x: number,
  processes: number,
  run: Pick<CrowdRun, "sections" | "processorUs" | "serverSeconds" | "machineSeconds">,
  seconds: number,
): Load {
  const { sections, processorUs, serverSeconds, machineSeconds } = run;
  const used = { serverSeconds: [serverSeconds], callersUs: processorUs, machineSeconds };
  return { x, rate: sections.length / seconds, processes, ...shares(used, seconds) };
}

function table(x: string, y: string, lines: readonly LoadLine[]): Pick<Curve, "figures" | "lines"> {
  const whole = (value: number): string => value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return {
    figures: { x, y, columns: [y, "server, % of a core", "callers, % of a core", "others, % of a core"] },
    lines: lines.map(({ name, loads }) => ({
      name,
      points: loads.map((load) => ({
        x: load.x,
        y: load.rate,
        cells: [load.rate, load.serverPercent, load.callersPercent, load.othersPercent].map(whole),
      })),
    })),
  };
}

function size(load: Load | undefined): string {
  return (load?.x ?? 0).toLocaleString("en-US");
}
