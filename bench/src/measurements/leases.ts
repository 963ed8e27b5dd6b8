/** What held leases cost: memory in the process and on the server, and processor time for their renewals. */
import { Crew } from "../crew.js";
import { target } from "../results.js";
import { infoNumber, processorOf } from "../server.js";
import type { HoldDone, WatchDone } from "../worker/orders.js";
import { entriesOf } from "./entries.js";
import type { Conditions } from "./entry.js";
import type { Measurement } from "./measurement.js";

/** Enough time to acquire all of them on a slow machine. */
const FILL_MS = 120_000;
const PERCENT = 100;

/** The result of one run. */
export interface Held {
  readonly bytesInProcess: number;
  readonly bytesOnServer: number;
  /** Percent of one core over the watched time. */
  readonly processPercent: number;
  readonly serverPercent: number;
}

export const leases: Measurement = {
  name: "leases",
  title: ({ leases: held, connection, seconds }) =>
    `${held.toLocaleString("en-US")} leases of ${connection.leaseMs / 1_000} s held by one process, watched for ${seconds} s`,
  // A third of the lease, so that each lease is renewed once.
  seconds: 10,
  figures: [
    { name: "process", unit: "B per lease", digits: 0, better: "less" },
    { name: "server", unit: "B per lease", digits: 0, better: "less" },
    { name: "renewal", unit: "% of a core", digits: 1, better: "less", isDrawn: true },
    { name: "on the server", unit: "% of a core", digits: 1, better: "less" },
  ],

  entries: (adapters) =>
    entriesOf(
      adapters.filter(({ role, onlyFree }) => role !== "raw" && onlyFree === undefined),
      async ({ name }, conditions) => ({
        async run() {
          const held = await runLeases(name, conditions);
          return { values: [held.bytesInProcess, held.bytesOnServer, held.processPercent, held.serverPercent] };
        },
        async close() {},
      }),
      ({ role, name }) => {
        if (role === "peer") return "not measured, because the target concerns only Holdfast";
        return name === "holdfast" ? undefined : "the same as holdfast while a lease is held";
      },
    ),

  targets: (results, { leases: held }) => {
    const what = `${held.toLocaleString("en-US")} held leases`;
    const atMost = (bound: number): { readonly atMost: number } => ({ atMost: bound });
    const inProcess = results.median("holdfast", "process");
    return [
      target(`${what}, memory of the process`, inProcess, atMost(1_500), "B per lease", 0),
      target(`${what}, memory of the server`, results.median("holdfast", "server"), atMost(1_500), "B per lease", 0),
      target(`${what}, renewal load`, results.median("holdfast", "renewal"), atMost(5), "% of a core", 1),
      target(
        `${what}, renewal load of the server`,
        results.median("holdfast", "on the server"),
        atMost(5),
        "% of a core",
        1,
      ),
    ];
  },
};

/**
 * Holds `conditions.leases` leases in a fresh process and measures what they cost.
 *
 * By default, the measurement starts once each lease has been renewed. The first renewal of a lease costs more than all
 * later ones, because code is compiled and strings are built. For leases that are held for long, that does not matter.
 *
 * @param settleMs  time from the last grant to the start of the measurement
 */
export async function runLeases(
  name: string,
  { connection, seconds, leases: count, server: { control } }: Conditions,
  settleMs: number = connection.leaseMs / 3,
): Promise<Held> {
  await control.flushall();
  const crew = await Crew.start({ name, connection, processes: 1, weighing: true });
  try {
    const memoryBefore = await infoNumber(control, "memory", "used_memory");
    const [hold] = await crew.all<HoldDone>(() => ({ task: "hold", leases: count, settleMs }), FILL_MS + settleMs);
    const bytesOnServer = (await infoNumber(control, "memory", "used_memory")) - memoryBefore;
    const serverBefore = await processorOf(control);
    const [watch] = await crew.all<WatchDone>(() => ({ task: "watch", seconds }), seconds * 1_000);
    const serverSeconds = (await processorOf(control)) - serverBefore;
    const size = await control.dbsize();
    if (size < count) throw new Error(`only ${size} keys are left of ${count} leases`);
    return {
      bytesInProcess: (hold?.bytes ?? Number.NaN) / count,
      bytesOnServer: bytesOnServer / count,
      processPercent: ((watch?.processorUs ?? Number.NaN) / 1e6 / seconds) * PERCENT,
      serverPercent: (serverSeconds / seconds) * PERCENT,
    };
  } finally {
    await crew.end();
  }
}
