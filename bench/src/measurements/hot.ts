import { type Results, target } from "../results.js";
import { jain } from "../statistics.js";
import { runCrowd } from "./crowds.js";
import { entriesOf, onePerWayToWait } from "./entries.js";
import type { Target } from "./entry.js";
import type { Measurement } from "./measurement.js";

const PROCESSES = 2;
/** The part of the last run that is kept for the timeline picture. */
const DRAWN_MS = 40;
const LEAST_TIMES_BEST_PEER = 20;
const LONGEST_WAIT_MS = 20;
/** In strict order, each caller is served once per round of the queue. */
const LONGEST_STRICT_ROUNDS = 2;
const ROUNDS = "longest wait in rounds";

/** One hot name: empty sections, and each caller asks again immediately. */
export const hot: Measurement = {
  name: "hot",
  title: ({ callers }) => `hot key: ${PROCESSES} processes × ${callers} callers, empty sections, exclusion checked`,
  seconds: 1.5,
  figures: [
    { name: "rate", unit: "sections/s", digits: 0, better: "more" },
    { name: "longest wait", unit: "ms", digits: 1, better: "less", atLeast: true, isDrawn: true },
    { name: ROUNDS, unit: "", digits: 2, better: "less", atLeast: true },
    { name: "Jain's index", unit: "", digits: 3, better: "more", isDrawn: true },
  ],

  entries: (adapters) =>
    entriesOf(
      adapters,
      async ({ name }, conditions) => ({
        async run() {
          const options = { name, processes: PROCESSES, callers: conditions.callers, sectionMs: 0 };
          const { sections, untilMs, longestWaitMs, longestWaitSections, shares } = await runCrowd(options, conditions);
          const rounds = longestWaitSections / (PROCESSES * conditions.callers);
          const drawn = sections.filter(({ startedAtMs }) => startedAtMs >= untilMs - DRAWN_MS);
          return {
            values: [sections.length / conditions.seconds, longestWaitMs, rounds, jain(shares)],
            sections: drawn,
          };
        },
        async close() {},
      }),
      onePerWayToWait,
      true,
    ),

  targets: (results) => [
    rate(results),
    target(
      "hot key, longest wait, cohort",
      results.median("holdfast", "longest wait"),
      { atMost: LONGEST_WAIT_MS },
      "ms",
      1,
    ),
    strictWait(results),
    target("hot key, Jain's index, cohort", results.median("holdfast", "Jain's index"), { atLeast: 0.95 }, "", 3),
    target(
      "hot key, Jain's index, strict",
      results.median("holdfast/strict", "Jain's index"),
      { atLeast: 0.99 },
      "",
      3,
    ),
  ],
};

function rate(results: Results): Target {
  const peer = results.bestPeer("rate");
  const ratio = peer === undefined ? Number.NaN : results.ratio("holdfast", peer, "rate");
  return target("hot key, sections/s", ratio, { atLeast: LEAST_TIMES_BEST_PEER }, `× ${peer ?? "the best peer"}`, 1);
}

/** The longest wait in rounds. In a round, as many sections begin as there are callers. */
function strictWait(results: Results): Target {
  const rounds = results.median("holdfast/strict", ROUNDS);
  return target("hot key, longest wait, strict", rounds, { atMost: LONGEST_STRICT_ROUNDS }, "rounds of the queue");
}
