/**
 * The server time of a pair, as the server reports it (INFO commandstats). The server is the one resource that cannot be
 * scaled out, and a busy client machine disturbs this number least.
 *
 * The server also lists the commands that scripts call, and so counts their time twice. Therefore a few pairs are watched
 * first (MONITOR), to find the share of each command's calls that came from a client.
 */
import { Crew } from "../crew.js";
import { monitor } from "../monitor.js";
import { target } from "../results.js";
import type { Server } from "../server.js";
import type { PairsDone } from "../worker/orders.js";
import { entriesOf, withoutFairness } from "./entries.js";
import type { Measurement } from "./measurement.js";

/** Enough in parallel to keep the server busy, so that its caches are as warm as in production. */
const PARALLEL = 32;
const WATCH_SECONDS = 0.05;

export const serverTime: Measurement = {
  name: "server",
  title: () => "server time per uncontended acquire + release",
  seconds: 0.2,
  figures: [
    { name: "time", unit: "µs", digits: 2, better: "less" },
    { name: "commands", unit: "per pair", digits: 2, better: "less" },
  ],

  entries: (adapters) =>
    entriesOf(
      adapters,
      ({ name }, { connection, seconds, server: { control } }) =>
        Crew.prepared({ name, connection, processes: 1 }, async (crew) => {
          const pairsFor = async (runSeconds: number): Promise<number> => {
            const order = { task: "pairs", seconds: runSeconds, parallel: PARALLEL } as const;
            const [done] = await crew.all<PairsDone>(() => order, runSeconds * 1_000);
            return done?.pairs ?? Number.NaN;
          };
          await pairsFor(seconds);
          const shares = await sharesFromClients(connection.port, () => pairsFor(WATCH_SECONDS));
          return {
            async run() {
              await control.config("RESETSTAT");
              const pairs = await pairsFor(seconds);
              const { calls, us } = totalOf(await control.info("commandstats"), shares);
              return { values: [us / pairs, calls / pairs] };
            },
            close: () => crew.end(),
          };
        }),
      (adapter) => (adapter.role === "local" ? "it has no server" : withoutFairness(adapter)),
    ),

  targets: (results, { server }) => [
    target(
      "server time per uncontended pair",
      results.ratio("holdfast", "raw", "time"),
      { atMost: mostTimesRaw(server) },
      "× raw",
    ),
  ],
};

/** The cost of a script differs between servers. */
function mostTimesRaw({ isValkey, version }: Pick<Server, "isValkey" | "version">): number {
  if (isValkey) return 1.9;
  return Number(version.split(".")[0]) < 8 ? 3 : 2.3;
}

async function sharesFromClients(port: number, work: () => Promise<unknown>): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, { fromClients: number; all: number }>();
  const end = await monitor(port, (command, isNested) => {
    const count = counts.get(command) ?? { fromClients: 0, all: 0 };
    count.all += 1;
    if (!isNested) count.fromClients += 1;
    counts.set(command, count);
  });
  try {
    await work();
  } finally {
    end();
  }
  return new Map([...counts].map(([command, { fromClients, all }]) => [command, fromClients / all]));
}

function totalOf(info: string, shares: ReadonlyMap<string, number>): { readonly calls: number; readonly us: number } {
  let calls = 0;
  let us = 0;
  for (const [, command = "", callsOf, usOf] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)) {
    // Subcommands are listed as command|subcommand.
    const share = shares.get(command.split("|")[0] ?? "") ?? 0;
    calls += Number(callsOf) * share;
    us += Number(usOf) * share;
  }
  return { calls, us };
}
