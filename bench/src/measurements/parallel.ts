import type { Measurement } from "./measurement.js";
import { pairsFor, warmUp } from "./pairs.js";

const PARALLEL = 128;

/** How much one process can do when it is busy: here the processor decides, not the round trip. */
export const parallel: Measurement = {
  name: "parallel",
  title: () => `uncontended acquire + release, ${PARALLEL} in parallel`,
  figures: [{ name: "rate", unit: "pairs/s", digits: 0 }],

  async prepare(adapter, { server, seconds }) {
    const contestant = await adapter.open(server.port);
    await warmUp(contestant, seconds, PARALLEL);
    return {
      async run() {
        const { pairs, tookMs } = await pairsFor(contestant, { seconds, parallel: PARALLEL });
        return [(pairs / tookMs) * 1_000];
      },
      close: () => contestant.close(),
    };
  },
};
