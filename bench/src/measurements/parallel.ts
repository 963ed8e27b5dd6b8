import { adapterNamed } from "../adapters/all.js";
import { Crew } from "../crew.js";
import { type Results, target } from "../results.js";
import type { PairsDone } from "../worker/orders.js";
import { entriesOf, withoutFairness } from "./entries.js";
import type { Target } from "./entry.js";
import type { Measurement } from "./measurement.js";

const PARALLEL = 128;
const OWN = ["holdfast", "holdfast/node-redis", "holdfast/glide"];

/** How much one process can do when it is busy: here the processor decides, not the round trip. */
export const parallel: Measurement = {
  name: "parallel",
  title: () => `uncontended acquire + release, ${PARALLEL} in parallel`,
  seconds: 0.3,
  figures: [
    { name: "rate", unit: "pairs/s", digits: 0, better: "more" },
    // Processor time of the calling process, collector included; it suffers less from a busy machine than the rate.
    { name: "processor", unit: "µs per pair", digits: 2, better: "less" },
  ],

  entries: (adapters) =>
    entriesOf(
      adapters,
      async ({ name }, { connection, seconds }) => {
        const crew = await Crew.start({ name, connection, processes: 1 });
        const pairs = async (): Promise<PairsDone> => {
          const order = { task: "pairs", seconds, parallel: PARALLEL } as const;
          const [done] = await crew.all<PairsDone>(() => order, seconds * 1_000);
          return done as PairsDone; // one process, one answer
        };
        await pairs();
        return {
          async run() {
            const { pairs: count, tookMs, processorUs } = await pairs();
            return { values: [(count / tookMs) * 1_000, processorUs / count] };
          },
          close: () => crew.end(),
        };
      },
      withoutFairness,
      true,
    ),

  targets: (results) => [
    target("128 in parallel, pairs/s", results.ratio("holdfast", "raw", "rate"), { atLeast: 0.7 }, "× raw"),
    abovePeers(results),
  ],
};

/** A peer is compared with ours on the same client, since clients differ more than locks do. */
function abovePeers(results: Results): Target {
  const margins = OWN.flatMap((own) => {
    const { client } = adapterNamed(own);
    const peer = results.bestPeer("rate", (name) => adapterNamed(name).client === client);
    return peer === undefined ? [] : [{ peer, margin: results.ratio(own, peer, "rate") }];
  }).filter(({ margin }) => !Number.isNaN(margin));
  const least = margins.toSorted((a, b) => a.margin - b.margin)[0];
  const what = "128 in parallel, pairs/s: above every peer on the same client";
  const bound = target(what, least?.margin ?? Number.NaN, { atLeast: 1 }, `× ${least?.peer ?? "the best peer"}`);
  return { ...bound, reached: least === undefined ? null : least.margin > 1 };
}
