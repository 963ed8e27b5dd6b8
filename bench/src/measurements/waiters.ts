import type { Adapter } from "../adapters/adapter.js";
import { target } from "../results.js";
import { runCrowd } from "./crowds.js";
import type { Entry } from "./entry.js";
import type { Measurement } from "./measurement.js";

const PROCESSES = 2;
const FEW = 100;
const SHORT = "few";
const LONG = "many";

/** Compares the throughput of a name that many callers want with that of a name that few want. */
export const waiters: Measurement = {
  name: "waiters",
  title: ({ waiters: many }) =>
    `sections/s with ${many.toLocaleString("en-US")} waiters on one name and with ${FEW}, ${PROCESSES} processes, exclusion checked`,
  seconds: 0.8,
  figures: [{ name: "rate", unit: "sections/s", digits: 0, better: "more" }],

  entries: (adapters) =>
    adapters
      .filter(({ role }) => role !== "raw")
      .flatMap((adapter): readonly Entry[] => {
        if (adapter.role === "peer")
          return [
            {
              name: adapter.name,
              role: "peer",
              prepare: { absent: "not measured, because the target concerns only Holdfast" },
            },
          ];
        if (adapter.client !== "ioredis" || adapter.onlyFree !== undefined) return [];
        return [entry(adapter, SHORT), { ...entry(adapter, LONG), yardstick: nameOf(adapter.name, SHORT) }];
      }),

  targets: (results, { waiters: many }) =>
    ["holdfast", "holdfast/strict"].map((own) =>
      target(
        `${many.toLocaleString("en-US")} waiters on one name, sections/s, ${own === "holdfast" ? "cohort" : "strict"}`,
        results.ratio(nameOf(own, LONG), nameOf(own, SHORT), "rate"),
        { atLeast: 0.8 },
        `× that of ${FEW}`,
      ),
    ),
};

function entry({ name, role }: Adapter, size: typeof SHORT | typeof LONG): Entry {
  return {
    name: nameOf(name, size),
    role,
    async prepare(conditions) {
      const all = size === SHORT ? FEW : conditions.waiters;
      return {
        async run() {
          const options = { name, processes: PROCESSES, callers: Math.ceil(all / PROCESSES), sectionMs: 0 };
          const { sections } = await runCrowd(options, conditions);
          return { values: [sections.length / conditions.seconds] };
        },
        async close() {},
      };
    },
  };
}

function nameOf(adapter: string, size: string): string {
  return `${adapter}, ${size}`;
}
