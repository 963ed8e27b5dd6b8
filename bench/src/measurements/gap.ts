/**
 * How long a lock is idle when it moves between processes: from the end of a section to the start of the next one in
 * another process. The minimum is one publish hop, which is measured in the same rounds, with as many processes and at
 * the same rate.
 */
import { Crew } from "../crew.js";
import { target } from "../results.js";
import { quantile } from "../statistics.js";
import { machineMs } from "../worker/clock.js";
import type { HopDone } from "../worker/orders.js";
import { runCrowd } from "./crowds.js";
import { entriesOf, onePerWayToWait } from "./entries.js";
import type { Conditions, Entry, Prepared, Section } from "./entry.js";
import type { Measurement } from "./measurement.js";

const PROCESSES = 4;
const CALLERS = 8;
const SECTION_MS = 1;
const HOP = "publish hop";
const US_PER_MS = 1_000;

export const gap: Measurement = {
  name: "gap",
  title: () =>
    `hand-over between processes: ${PROCESSES} processes × ${CALLERS} callers, sections of ${SECTION_MS} ms, exclusion checked`,
  seconds: 0.5,
  figures: [
    { name: "p50", unit: "µs", digits: 0, better: "less" },
    { name: "p99", unit: "µs", digits: 0, better: "less" },
    { name: "rate", unit: "sections/s", digits: 0, better: "more" },
  ],

  entries: (adapters) => [
    hop,
    ...entriesOf(adapters, prepare, onePerWayToWait).map((entry) => ({ ...entry, yardstick: HOP })),
  ],

  targets: (results) => [
    target(
      "gap between processes, p50, cohort",
      results.ratio("holdfast", HOP, "p50"),
      { atMost: 1.3 },
      "× publish hop",
    ),
    target(
      "gap between processes, p50, strict",
      results.ratio("holdfast/strict", HOP, "p50"),
      { atMost: 1.3 },
      "× publish hop",
    ),
  ],
};

const hop: Entry = {
  name: HOP,
  role: "yardstick",
  async prepare({ connection, seconds }) {
    const crew = await Crew.start({ name: "publish", connection, processes: PROCESSES });
    return {
      async run() {
        const untilMs = machineMs() + seconds * 1_000;
        const order = { task: "hop", ring: PROCESSES, pauseMs: SECTION_MS, untilMs } as const;
        const hops = await crew.all<readonly HopDone[]>((index) => ({ ...order, index }), seconds * 1_000);
        const hopsUs = hops.flat().map(({ sentAtMs, cameAtMs }) => (cameAtMs - sentAtMs) * US_PER_MS);
        return { values: [quantile(hopsUs, 0.5), quantile(hopsUs, 0.99), hopsUs.length / seconds] };
      },
      close: () => crew.end(),
    };
  },
};

async function prepare({ name }: { readonly name: string }, conditions: Conditions): Promise<Prepared> {
  return {
    async run() {
      const options = { name, processes: PROCESSES, callers: CALLERS, sectionMs: SECTION_MS };
      const { sections } = await runCrowd(options, conditions);
      const gapsUs = gapsBetweenProcesses(sections).map((ms) => ms * US_PER_MS);
      return { values: [quantile(gapsUs, 0.5), quantile(gapsUs, 0.99), sections.length / conditions.seconds] };
    },
    async close() {},
  };
}

/** The time from the end of each section to the start of the next one, if that was in another process. */
export function gapsBetweenProcesses(sections: readonly Section[]): number[] {
  return sections.flatMap((section, i) => {
    const before = sections[i - 1];
    return before === undefined || before.process === section.process ? [] : [section.startedAtMs - before.endedAtMs];
  });
}
