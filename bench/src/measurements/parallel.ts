import { adapterNamed } from "../adapters/all.js";
import { Crew } from "../crew.js";
import { type Results, target } from "../results.js";
import type { PairsDone } from "../worker/orders.js";
import { entriesOf, withoutFairness } from "./entries.js";
import type { Target } from "./entry.js";
import type { Measurement } from "./measurement.js";
import { warmUp } from "./warm-up.js";

const PARALLEL = 128;
const WARM_UP_SECONDS = 1;

/** The throughput of one busy process, which is limited by the processor and not by round trips. */
export const parallel: Measurement = {
  name: "parallel",
  title: () => `uncontended acquire + release, ${PARALLEL} in parallel`,
  seconds: 0.3,
  hasOwnCores: true,
  figures: [
    { name: "rate", unit: "pairs/s", digits: 0, better: "more" },
    // Processor time of the calling process, including garbage collection. A busy machine affects it less than the rate.
    { name: "processor", unit: "µs per pair", digits: 2, better: "less" },
  ],

  entries: (adapters) =>
    entriesOf(
      adapters,
      ({ name }, { connection, seconds }) =>
        Crew.prepared({ name, connection, processes: 1 }, async (crew) => {
          const pairs = async (forSeconds: number): Promise<PairsDone> => {
            const order = { task: "pairs", seconds: forSeconds, parallel: PARALLEL } as const;
            const [done] = await crew.all<PairsDone>(() => order, forSeconds * 1_000);
            return done as PairsDone; // one process, one reply
          };
          await warmUp(async () => (await pairs(WARM_UP_SECONDS)).pairs);
          return {
            async run() {
              const { pairs: count, tookMs, processorUs } = await pairs(seconds);
              return { values: [(count / tookMs) * 1_000, processorUs / count] };
            },
            pids: crew.pids,
            close: () => crew.end(),
          };
        }),
      withoutFairness,
      true,
    ),

  targets: (results) => [
    target("128 in parallel, pairs/s", results.ratio("holdfast", "raw", "rate"), { atLeast: 0.9 }, "× raw"),
    abovePeersWithToken(results),
  ],
};

/** A grant without a token is less work, so only peers with one are compared. */
function abovePeersWithToken(results: Results): Target {
  const peer = results.bestPeer("rate", (name) => adapterNamed(name).hasToken === true);
  const ratio = peer === undefined ? Number.NaN : results.ratio("holdfast", peer, "rate");
  const unit = `× ${peer ?? "the best of them"}`;
  return target("128 in parallel, pairs/s, compared with peers that have a token", ratio, { atLeast: 1 }, unit);
}
