import { Crew } from "../crew.js";
import { target } from "../results.js";
import type { Times } from "../worker/orders.js";
import { entriesOf, withoutFairness } from "./entries.js";
import type { Measurement } from "./measurement.js";

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
