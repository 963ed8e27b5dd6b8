import type { Measurement } from "./measurement.js";
import { pairsFor, warmUp } from "./pairs.js";

const PARALLEL = 128;

/** How much one process can do when it is busy: here the processor decides, not the round trip. */
export const parallel: Measurement = {
  name: "parallel",
  title: () => `uncontended acquire + release, ${PARALLEL} in parallel`,
  figures: [
    { name: "rate", unit: "pairs/s", digits: 0 },
    // Processor time of the calling process, collector included; it suffers less from a busy machine than the rate.
    { name: "processor", unit: "µs per pair", digits: 2 },
  ],

  async prepare(adapter, { connection, seconds }) {
    const contestant = await adapter.open(connection);
    await warmUp(contestant, seconds, PARALLEL);
    return {
      async run() {
        const before = process.cpuUsage();
        const { pairs, tookMs } = await pairsFor(contestant, { seconds, parallel: PARALLEL });
        const { user, system } = process.cpuUsage(before);
        return [(pairs / tookMs) * 1_000, (user + system) / pairs];
      },
      close: () => contestant.close(),
    };
  },
};
