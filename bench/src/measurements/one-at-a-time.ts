/** How long one caller in its own process takes to acquire and release a free lock. */
import type { Connection } from "../adapters/adapter.js";
import { Crew } from "../crew.js";
import type { PairsDone, Times } from "../worker/orders.js";
import type { Figure, Prepared } from "./entry.js";
import { warmUp } from "./warm-up.js";

const WARM_UP_SECONDS = 1;

/** The figures of `oneAtATime`. */
export const TIMES: readonly Figure[] = [
  { name: "p50", unit: "µs", digits: 1, better: "less" },
  { name: "p99", unit: "µs", digits: 1, better: "less" },
];

/** Starts the process and warms it up. */
export function oneAtATime(name: string, connection: Connection, seconds: number): Promise<Prepared> {
  return Crew.prepared({ name, connection, processes: 1 }, (crew) => warmedUp(crew, seconds));
}

async function warmedUp(crew: Crew, seconds: number): Promise<Prepared> {
  const times = async (): Promise<Times | undefined> =>
    (await crew.all<Times>(() => ({ task: "one-at-a-time", seconds }), seconds * 1_000))[0];
  // Several in parallel, so that the code is compiled sooner.
  const order = { task: "pairs", seconds: WARM_UP_SECONDS, parallel: 16 } as const;
  await warmUp(async () => (await crew.all<PairsDone>(() => order, WARM_UP_SECONDS * 1_000))[0]?.pairs ?? 0);
  await times();
  return {
    async run() {
      const { p50 = Number.NaN, p99 = Number.NaN } = (await times()) ?? {};
      return { values: [p50, p99] };
    },
    pids: crew.pids,
    close: () => crew.end(),
  };
}
