/** What is measured at a point of a curve: a rate, and the processor time used meanwhile. */
import type { Connection } from "../adapters/adapter.js";
import { Crew } from "../crew.js";
import { machineSeconds } from "../machine.js";
import { warmUp } from "../measurements/warm-up.js";
import { infoNumber, processorOf, type Server } from "../server.js";
import { quantile } from "../statistics.js";
import type { PairsDone } from "../worker/orders.js";
import { NAMES } from "../worker/pairs.js";
import type { Load } from "./bend.js";

const US_PER_PERCENT_SECOND = 1e4;
const PERCENT = 100;
/** Minimum length, even for short runs. Each name must be used, because its first use costs more in a cluster. */
const WARM_UP_SECONDS = 1;
/** A generous limit, because warming up can take much longer than a second on a busy machine. */
const WARM_UP_WITHIN_MS = 60_000;

/** Processor time in one run. */
export interface Used {
  /** Of each server. */
  readonly serverSeconds: readonly number[];
  /** Of all callers' processes together. */
  readonly callersUs: number;
  /** Of all processes on this machine. */
  readonly machineSeconds: number;
}

/** Converts processor times to shares of one core. */
export function shares(
  { serverSeconds, callersUs, machineSeconds: everybody }: Used,
  seconds: number,
): Omit<Load, "x" | "rate" | "processes"> {
  const percents = serverSeconds.map((own) => (own / seconds) * PERCENT);
  const serverPercent = percents.reduce((sum, own) => sum + own, 0);
  const callersPercent = callersUs / seconds / US_PER_PERCENT_SECOND;
  const othersPercent = Math.max(0, (everybody / seconds) * PERCENT - serverPercent - callersPercent);
  const busiestPercent = Math.max(...percents);
  return { serverPercent, busiestPercent, servers: percents.length, callersPercent, othersPercent };
}

/** The median of each number over repeated runs. @param loads  at least one */
export function middle<Some extends Load>(loads: readonly Some[]): Some {
  const [first] = loads;
  if (first === undefined) throw new RangeError("loads must be at least one; got none");
  // All fields of a load are numbers.
  const names = Object.keys(first) as (keyof Some)[];
  const medians = names.map((name) => [
    name,
    quantile(
      loads.map((load) => Number(load[name])),
      0.5,
    ),
  ]);
  return Object.fromEntries(medians) as Some;
}

/** Options of a run that acquires and releases free locks. */
export interface PairsOptions {
  readonly name: string;
  readonly connection: Connection;
  readonly servers: readonly Server[];
  readonly processes: number;
  /** Callers in each process. */
  readonly parallel: number;
  readonly seconds: number;
}

/** The result of a run of free locks. */
export interface PairsLoad extends Omit<Load, "x"> {
  /** How often servers read from a connection per pair. The lower, the more requests arrived together. */
  readonly readsPerPair: number;
}

/** Runs it once, in new processes. */
export async function runPairs(options: PairsOptions): Promise<PairsLoad> {
  const { name, connection, servers, processes, parallel, seconds } = options;
  const crew = await Crew.start({ name, connection, processes });
  try {
    const order = { task: "pairs", parallel } as const;
    const prefix = (index: number): string => `order:${index}`;
    await warmUp(async () => {
      const done = await crew.all<PairsDone>(
        (index) => ({ ...order, seconds: Math.max(seconds, WARM_UP_SECONDS), atLeast: NAMES, prefix: prefix(index) }),
        WARM_UP_WITHIN_MS,
      );
      return done.reduce((sum, { pairs, tookMs }) => sum + pairs / tookMs, 0);
    });
    const before = { servers: await lookAt(servers), machine: machineSeconds() };
    const done = await crew.all<PairsDone>((index) => ({ ...order, seconds, prefix: prefix(index) }), seconds * 1_000);
    const after = { servers: await lookAt(servers), machine: machineSeconds() };
    const between = (of: (look: Look) => number): number[] =>
      after.servers.map((look, i) => of(look) - of(before.servers[i] ?? look));
    const pairs = done.reduce((sum, one) => sum + one.pairs, 0);
    const used = {
      serverSeconds: between(({ processor }) => processor),
      callersUs: done.reduce((sum, { processorUs }) => sum + processorUs, 0),
      machineSeconds: after.machine - before.machine,
    };
    return {
      rate: done.reduce((sum, one) => sum + (one.pairs / one.tookMs) * 1_000, 0),
      processes,
      readsPerPair: between(({ reads }) => reads).reduce((sum, own) => sum + own, 0) / pairs,
      ...shares(used, Math.max(...done.map(({ tookMs }) => tookMs)) / 1_000),
    };
  } finally {
    await crew.end();
  }
}

interface Look {
  readonly processor: number;
  readonly reads: number;
}

function lookAt(servers: readonly Server[]): Promise<Look[]> {
  return Promise.all(
    servers.map(async ({ control }) => ({
      processor: await processorOf(control),
      reads: await infoNumber(control, "stats", "total_reads_processed"),
    })),
  );
}
