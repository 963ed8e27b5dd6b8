import { Crew } from "../crew.js";
import { target } from "../results.js";
import type { PairsDone, Times } from "../worker/orders.js";
import { entriesOf, withoutFairness } from "./entries.js";
import type { Measurement } from "./measurement.js";

const WARM_UP_SECONDS = 1;

/** How long one caller waits for a free lock and for giving it back: round trips, plus what the library adds. */
export const uncontended: Measurement = {
  name: "uncontended",
  title: () => "uncontended acquire + release, one at a time",
  seconds: 0.1,
  rounds: 4,
  figures: [
    { name: "p50", unit: "µs", digits: 1, better: "less" },
    { name: "p99", unit: "µs", digits: 1, better: "less" },
  ],

  entries: (adapters) =>
    entriesOf(
      adapters,
      async ({ name }, { connection, seconds }) => {
        const crew = await Crew.start({ name, connection, processes: 1 });
        const times = async (): Promise<Times | undefined> =>
          (await crew.all<Times>(() => ({ task: "one-at-a-time", seconds }), seconds * 1_000))[0];
        // Enough of them that the compiler has seen each path: one at a time that would take longer than the runs.
        await crew.all<PairsDone>(
          () => ({ task: "pairs", seconds: WARM_UP_SECONDS, parallel: 16 }),
          WARM_UP_SECONDS * 1_000,
        );
        await times();
        return {
          async run() {
            const { p50 = Number.NaN, p99 = Number.NaN } = (await times()) ?? {};
            return { values: [p50, p99] };
          },
          close: () => crew.end(),
        };
      },
      withoutFairness,
    ),

  targets: (results) => [
    target("uncontended acquire + release, p50", results.ratio("holdfast", "raw", "p50"), { atMost: 1.2 }, "× raw"),
  ],
};
