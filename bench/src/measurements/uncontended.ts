import { quantile } from "../statistics.js";
import type { Measurement } from "./measurement.js";
import { timesFor, warmUp } from "./pairs.js";

/** How long one caller waits for a free lock and for giving it back: round trips, plus what the library adds. */
export const uncontended: Measurement = {
  name: "uncontended",
  title: () => "uncontended acquire + release, one at a time",
  figures: [
    { name: "p50", unit: "µs", digits: 1 },
    { name: "p99", unit: "µs", digits: 1 },
  ],

  async prepare(adapter, { connection, seconds }) {
    const contestant = await adapter.open(connection);
    await warmUp(contestant, seconds, 1);
    return {
      async run() {
        const times = await timesFor(contestant, seconds);
        return [quantile(times, 0.5), quantile(times, 0.99)];
      },
      close: () => contestant.close(),
    };
  },
};
