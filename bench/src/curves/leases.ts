/** How memory and renewal load depend on the number of leases that one process holds. */

import type { Conditions } from "../measurements/entry.js";
import { type Held, runLeases } from "../measurements/leases.js";
import type { Curve } from "./report.js";
import type { OnRun } from "./throughput.js";

const LEASES = [1, 10, 100, 1_000, 10_000, 100_000];
/** With fewer leases, the other work of the process outweighs theirs. */
const TELLING = 1_000;
const BENT = 1.25;
const RENEWALS_PER_LEASE = 3;

/** One process with more and more leases. */
export async function leasesCurve(conditions: Conditions, onRun: OnRun): Promise<Curve> {
  const betweenRenewalsMs = (1.5 * conditions.connection.leaseMs) / RENEWALS_PER_LEASE;
  const points: { readonly x: number; readonly held: Held }[] = [];
  for (const leases of LEASES) {
    onRun(`leases: ${leases}`);
    // A few leases are all granted, and later renewed, at the same moment. The measurement starts between the first
    // two renewals, so that none falls on its start or end.
    const held = await runLeases("holdfast", { ...conditions, leases }, betweenRenewalsMs);
    points.push({ x: leases, held });
  }
  const drawn = [
    { name: "process", of: ({ processPercent }: Held) => processPercent },
    { name: "server", of: ({ serverPercent }: Held) => serverPercent },
  ];
  return {
    name: "leases",
    title: "renewal load, by leases that one process holds",
    figures: {
      x: "leases",
      y: "% of a core",
      columns: ["% of a core", "process, B per lease", "server, B per lease"],
    },
    lines: drawn.map(({ name, of }) => ({
      name,
      points: points.map(({ x, held }) => ({
        x,
        y: of(held),
        cells: [of(held).toFixed(2), bytes(x, held.bytesInProcess), bytes(x, held.bytesOnServer)],
      })),
    })),
    sentences: drawn.map(({ name, of }) => sentence(name, of, points)),
  };
}

function sentence(
  name: string,
  of: (held: Held) => number,
  points: readonly { readonly x: number; readonly held: Held }[],
): string {
  const telling = points.filter(({ x }) => x >= TELLING);
  const [first] = telling;
  const last = telling.at(-1);
  if (first === undefined || last === undefined) return "";
  const cost = (point: { readonly x: number; readonly held: Held }): number => of(point.held) / point.x;
  const growth = cost(last) / cost(first);
  const words = `From ${first.x.toLocaleString("en-US")} to ${last.x.toLocaleString("en-US")} leases the load of the ${name} goes from ${of(first.held).toFixed(1)} to ${of(last.held).toFixed(1)} % of a core`;
  if (growth > BENT)
    return `${words}: ${growth.toFixed(2)} × as much for each lease, so the load grows faster than their number.`;
  if (growth < 1 / BENT)
    return `${words}: ${growth.toFixed(2)} × as much for each lease, because more leases share the fixed cost.`;
  return `${words}: the same for each lease, so the growth is linear.`;
}

function bytes(leases: number, perLease: number): string {
  return leases < TELLING ? "–" : perLease.toLocaleString("en-US", { maximumFractionDigits: 0 });
}
