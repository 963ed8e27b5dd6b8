/**
 * Many callers on one name, in several processes. They are restarted for each run, because leftovers of starved
 * callers of a peer (timers, waits, keys) would affect its next run.
 *
 * The start and end of every section are recorded by the clock of the machine and compared with all others, so
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

/** Until the code is compiled on a slow machine, and the largest crowd has asked once. */
const WARM_UP_MS = 3_000;
const CHECK_MS = 250;
const LOCK = "hot";

/** Which library, how many callers, and how long they hold. */
export interface CrowdOptions {
  readonly name: string;
  /** What all of them want; absent: a name that only crowds use. */
  readonly lock?: string;
  readonly processes: number;
  /** In each process. */
  readonly callers: number;
  readonly sectionMs: number;
  /** How long they are at it before anything counts; absent: 3 s. */
  readonly warmUpMs?: number;
}

/** What a run of a crowd came to. */
export interface CrowdRun {
  /** Those that began in the measured time, in the order in which they began. */
  readonly sections: readonly Section[];
  readonly fromMs: number;
  readonly untilMs: number;
  /** Of those who were served last in the measured time, and of those who still waited at its end. */
  readonly longestWaitMs: number;
  /** How many sections began during one wait, at most: of the same waits. */
  readonly longestWaitSections: number;
  /** How often each caller was served, those who never were included. */
  readonly shares: readonly number[];
  /** Processor time of all callers' processes in the measured time. */
  readonly processorUs: number;
  /** Processor time of the server during the measurement. */
  readonly serverSeconds: number;
  /** Processor time of everybody on this machine in the measured time. */
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

/** Of all processes, in the order in which they began. */
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

/** @throws Error  of sections in the order in which they began, one began before the one before it had ended */
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
 * Returns how many sections began while one caller waited, at most.
 *
 * @param all           all sections, in the order in which they began
 * @param counted       those whose waits count
 * @param waitingSince  since when callers wait that are not served before `untilMs`, in ms
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

/** How many sections began before this moment, by binary search. */
function startedBefore(all: readonly Pick<Section, "startedAtMs">[], atMs: number): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((all[middle]?.startedAtMs ?? Infinity) < atMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** `Math.max` takes no half million arguments. */
function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
