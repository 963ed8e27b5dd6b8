/**
 * Measures each step of a hand-over between processes, and compares it with plain messages between the same number of
 * processes. Messages are sent every millisecond, and also as rarely as a cohort hands over, when the other processes
 * sleep while one serves all its callers.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Crew } from "../crew.js";
import { checkExclusion, sectionsOf } from "../measurements/crowds.js";
import type { Conditions, Section } from "../measurements/entry.js";
import { machineMs } from "../worker/clock.js";
import type { Crowd, CrowdDone, Hop, HopDone, Order, Traced } from "../worker/orders.js";
import { type Followed, follow, type HandOver } from "./hand-over.js";

const PROCESSES = 4;
const CALLERS = 8;
const SECTION_MS = 1;
/** The maximum for the warm-up, which otherwise takes as long as a run. */
const WARM_UP_SECONDS = 1;
const SECONDS = 5;
const DRAINED_MS = 300;
const MS_PER_SECOND = 1_000;
const HOP = "publish";

/** One line of the table. */
export interface MomentsLine extends Followed {
  readonly name: string;
  /** Time from one hand-over to the next one, in ms. */
  readonly everyMs: number;
}

/** A contestant, or the ring of plain messages. */
interface Line {
  readonly name: string;
  /** Its name in the worker. */
  readonly worker: string;
  orderFor(lockName: string, seconds: number): (index: number) => Hop | Crowd;
  handOvers(results: readonly unknown[]): readonly HandOver[];
}

const LINES: readonly Line[] = [
  ring("publish, every ms", SECTION_MS),
  lock("holdfast/strict"),
  ring(`publish, every ${CALLERS} ms`, CALLERS * SECTION_MS),
  lock("holdfast"),
];

/** Runs each line in turn. @param seconds  length of one run; 5 if absent */
export async function measureMoments(
  { connection, server }: Omit<Conditions, "seconds">,
  seconds: number = SECONDS,
  onRun: (text: string) => void = () => {},
): Promise<readonly MomentsLine[]> {
  const lines: MomentsLine[] = [];
  for (const { name, worker, orderFor, handOvers } of LINES) {
    onRun(`moments: ${name}`);
    await server.control.flushall();
    const crew = await Crew.start({ name: worker, connection, processes: PROCESSES });
    try {
      const warmUpSeconds = Math.min(WARM_UP_SECONDS, seconds);
      await crew.all(orderFor("warm-up", warmUpSeconds), warmUpSeconds * MS_PER_SECOND);
      // Callers that still wait for the warm-up's lock are served first, so that they are not measured.
      await sleep(DRAINED_MS);
      const order = orderFor("moments", seconds);
      const traceOf = (index: number): Order => ({ task: "trace", order: order(index) });
      const done = await crew.all<Traced<unknown>>(traceOf, seconds * MS_PER_SECOND);
      const found = handOvers(done.map(({ result }) => result));
      lines.push({
        name,
        everyMs: (seconds * MS_PER_SECOND) / found.length,
        ...follow(
          found,
          done.map(({ traffic }) => traffic),
        ),
      });
    } finally {
      await crew.end();
    }
  }
  return lines;
}

function ring(name: string, pauseMs: number): Line {
  return {
    name,
    worker: HOP,
    orderFor(_, seconds) {
      const untilMs = machineMs() + seconds * MS_PER_SECOND;
      return (index) => ({ task: "hop", index, ring: PROCESSES, pauseMs, untilMs });
    },
    // worker/hop.ts returns this type.
    handOvers: (results) => (results as readonly (readonly HopDone[])[]).flatMap(handedOn),
  };
}

/** Each message comes from the previous process of the ring. */
function handedOn(hops: readonly HopDone[], to: number): readonly HandOver[] {
  const from = (to + PROCESSES - 1) % PROCESSES;
  return hops.map(({ sentAtMs, cameAtMs }) => ({ from, to, endedAtMs: sentAtMs, startedAtMs: cameAtMs }));
}

function lock(name: string): Line {
  return {
    name,
    worker: name,
    orderFor(lockName, seconds) {
      const fromMs = machineMs();
      const untilMs = fromMs + seconds * MS_PER_SECOND;
      const times = { fromMs, untilMs, checkUntilMs: untilMs };
      return () => ({ task: "crowd", lock: lockName, callers: CALLERS, sectionMs: SECTION_MS, ...times });
    },
    handOvers(results) {
      // worker/crowd.ts returns this type.
      const sections = sectionsOf(results as readonly CrowdDone[]);
      checkExclusion(sections);
      return betweenProcesses(sections);
    },
  };
}

function betweenProcesses(sections: readonly Section[]): readonly HandOver[] {
  return sections.flatMap(({ process, endedAtMs }, i) => {
    const next = sections[i + 1];
    if (next === undefined || next.process === process) return [];
    return [{ from: process, to: next.process, endedAtMs, startedAtMs: next.startedAtMs }];
  });
}
