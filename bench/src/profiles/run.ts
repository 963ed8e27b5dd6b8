/** Profiles every contestant of every workload, one after the other. */
import type { Conditions } from "../measurements/entry.js";
import { startServers, stopAll } from "../server.js";
import { type ProfileTable, tableOf } from "./report.js";
import type { Spent } from "./spent.js";
import type { Workload } from "./workloads.js";

/** @param seconds  length of one run; if undefined, each workload uses its own */
export async function profileAll(
  workloads: readonly Workload[],
  conditions: Omit<Conditions, "seconds">,
  seconds: number | undefined,
  onRun: (text: string) => void,
): Promise<readonly ProfileTable[]> {
  const tables: ProfileTable[] = [];
  for (const workload of workloads) {
    await conditions.server.control.flushall();
    const servers = await startServers(workload.servers ?? 0);
    try {
      const spents: { name: string; spent: Spent }[] = [];
      for (const name of workload.contestants) {
        onRun(`${workload.name}: ${name}`);
        const own = { ...conditions, servers, seconds: seconds ?? workload.seconds };
        spents.push({ name, spent: await workload.run(name, own) });
      }
      tables.push(tableOf(workload, spents));
    } finally {
      await stopAll(servers);
    }
  }
  return tables;
}
