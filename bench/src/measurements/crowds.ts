/**
 * Many callers on one name, in several processes. They are restarted for each run, because leftovers of starved
 * callers of a peer (timers, waits, keys) would affect its next run.
 *
 * The start and end of every section are recorded with the machine's clock and compared with all others, so
 * exclusion is checked during the measurement. In the last part of a run, sections yield to the event loop before they
 * end, because an overlap of empty sections would hardly be visible.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Crew } from "../crew.js";
import { machineSeconds } from "../machine.js";
import { processorOf } from "../server.js";
import { machineMs } from "../worker/clock.js";
import type { CrowdDone } from "../worker/orders.js";
import { NUMBERS_PER_SECTION } from "../worker/section-log.js";
import type { Conditions, Section } from "./entry.js";

/** Long enough to compile the code on a slow machine, and for every caller of the largest crowd to ask once. */
const WARM_UP_MS = 3_000;
const CHECK_MS = 250;
const LOCK = "hot";

/** Options of a crowd. */
export interface CrowdOptions {
  readonly name: string;
  /** The lock that all callers want. If absent, a name that only crowds use. */
  readonly lock?: string;
  readonly processes: number;
  /** Per process. */
  readonly callers: number;
  readonly sectionMs: number;
  /** Length of the warm-up before the measured time. 3 s if absent. */
  readonly warmUpMs?: number;
}

/** The result of a run of a crowd. */
export interface CrowdRun {
  /** The sections that began in the measured time, in order of their start. */
  readonly sections: readonly Section[];
  readonly fromMs: number;
  readonly untilMs: number;
  /** The longest wait of callers that were served in the measured time or still waited at its end. */
  readonly longestWaitMs: number;
  /** The largest number of sections that began during one of these waits. */
  readonly longestWaitSections: number;
  /** How often each caller was served, including callers that never were. */
  readonly shares: readonly number[];
  /** Processor time of all callers' processes in the measured time. */
  readonly processorUs: number;
  /** Processor time of the server in the measured time. */
  readonly serverSeconds: number;
  /** Processor time of all processes on this machine in the measured time. */
  readonly machineSeconds: number;
}

/** Runs a crowd once. @throws Error  two sections overlapped */
export async function runCrowd(
  { name, lock = LOCK, processes, callers, sectionMs, warmUpMs = WARM_UP_MS }: CrowdOptions,
  { connection, seconds, server }: Conditions,
): Promise<CrowdRun> {
  await server.control.flushall();
  const crew = await Crew.start({ name, connection, processes });
  try {
    const fromMs = machineMs() + warmUpMs;
    const untilMs = fromMs + seconds * 1_000;
    const checkUntilMs = untilMs + CHECK_MS;
    const order = { task: "crowd", lock, callers, sectionMs, fromMs, untilMs, checkUntilMs } as const;
    const [done, used] = await Promise.all([
      crew.all<CrowdDone>(() => order, checkUntilMs - machineMs()),
      secondsBetween(server.control, fromMs, untilMs),
    ]);
    const all = sectionsOf(done);
    checkExclusion(all);
    const sections = all.filter(({ startedAtMs }) => startedAtMs >= fromMs && startedAtMs < untilMs);
    const waits = sections.map(({ askedAtMs, startedAtMs }) => startedAtMs - askedAtMs);
    const open = done.flatMap(({ waitingSinceMs }) => waitingSinceMs.map((sinceMs) => untilMs - sinceMs));
    const shares = Array.from({ length: processes * callers }, () => 0);
    for (const { process, caller } of sections) {
      const index = process * callers + caller;
      shares[index] = (shares[index] ?? 0) + 1;
    }
    const processorUs = done.reduce((sum, result) => sum + result.processorUs, 0);
    return {
      sections,
      fromMs,
      untilMs,
      longestWaitMs: largest([...waits, ...open]),
      longestWaitSections: sectionsDuringLongestWait(
        all,
        sections,
        untilMs,
        done.flatMap(({ waitingSinceMs }) => waitingSinceMs),
      ),
      shares,
      processorUs,
      ...used,
    };
  } finally {
    await crew.end();
  }
}

async function secondsBetween(
  control: Redis,
  fromMs: number,
  untilMs: number,
): Promise<Pick<CrowdRun, "serverSeconds" | "machineSeconds">> {
  await sleep(fromMs - machineMs());
  const before = { server: await processorOf(control), machine: machineSeconds() };
  await sleep(untilMs - machineMs());
  return {
    serverSeconds: (await processorOf(control)) - before.server,
    machineSeconds: machineSeconds() - before.machine,
  };
}

/** The sections of all processes, in order of their start. */
export function sectionsOf(done: readonly Pick<CrowdDone, "sections">[]): Section[] {
  return done
    .flatMap(({ sections }, process) => read(sections, process))
    .toSorted((a, b) => a.startedAtMs - b.startedAtMs);
}

function read(numbers: Float64Array, process: number): Section[] {
  const sections: Section[] = [];
  for (let at = 0; at < numbers.length; at += NUMBERS_PER_SECTION) {
    const [caller = 0, askedAtMs = 0, startedAtMs = 0, endedAtMs = 0] = numbers.subarray(at, at + NUMBERS_PER_SECTION);
    sections.push({ process, caller, askedAtMs, startedAtMs, endedAtMs });
  }
  return sections;
}

/** @param sections  in order of their start. @throws Error  a section began before the previous one had ended */
export function checkExclusion(sections: readonly Section[]): void {
  for (let i = 1; i < sections.length; i += 1) {
    const before = sections[i - 1];
    const after = sections[i];
    if (before === undefined || after === undefined || after.startedAtMs >= before.endedAtMs) continue;
    const overlapMs = before.endedAtMs - after.startedAtMs;
    throw new Error(`exclusion was broken: two sections overlapped by ${overlapMs.toFixed(3)} ms`);
  }
}

/**
 * Returns the largest number of sections that began during one wait.
 *
 * @param all           all sections, in order of their start
 * @param counted       the sections whose waits count
 * @param waitingSince  the start of each wait that is not over at `untilMs`, in ms
 */
export function sectionsDuringLongestWait(
  all: readonly Pick<Section, "askedAtMs" | "startedAtMs">[],
  counted: readonly Pick<Section, "askedAtMs" | "startedAtMs">[],
  untilMs: number,
  waitingSince: readonly number[],
): number {
  const served = counted.map((one) => startedBefore(all, one.startedAtMs) - startedBefore(all, one.askedAtMs));
  const open = waitingSince.map((sinceMs) => startedBefore(all, untilMs) - startedBefore(all, sinceMs));
  return largest([...served, ...open]);
}

/** Counts the sections that began before `atMs`, by binary search. */
function startedBefore(all: readonly Pick<Section, "startedAtMs">[], atMs: number): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((all[middle]?.startedAtMs ?? Infinity) < atMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** `Math.max` cannot take half a million arguments. */
function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
