/**
 * A Redis Cluster for one run: masters without replicas, each of them a server as any other, which share all slots evenly.
 *
 * It is put together by commands to the servers, since redis-cli may not be there.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Server, startServers, stopAll } from "./server.js";

const HOST = "127.0.0.1";
const FLAGS = [
  ...["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"],
  // A node that no other node has met does not know its address, so it gives clients none.
  ...["--cluster-announce-ip", HOST],
];
/** Nodes talk to each other on the port + 10 000, which must be one as well. */
const BELOW_PORT = 55_536;
const SLOTS = 16_384;
const LOOK_MS = 20;
/** A guard against a cluster that never comes up; one that is fresh refuses everything for two seconds. */
const PATIENCE_MS = 30_000;

/**
 * Starts so many masters and waits until all of them serve all slots together.
 *
 * @throws Error  they do not; none of them is left
 */
export async function startCluster(masters: number): Promise<readonly Server[]> {
  const servers = await startServers(masters, { args: FLAGS, belowPort: BELOW_PORT });
  try {
    await join(servers);
    return servers;
  } catch (error) {
    await stopAll(servers);
    throw error;
  }
}

async function join(servers: readonly Server[]): Promise<void> {
  for (const [index, { control }] of servers.entries()) {
    // Else each of them believes that it is the newest, and they have to settle that first.
    await control.call("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
    const [from, to] = [index, index + 1].map((place) => Math.floor((place * SLOTS) / servers.length));
    await control.call("CLUSTER", "ADDSLOTSRANGE", from ?? 0, (to ?? SLOTS) - 1);
  }
  const [first, ...others] = servers;
  for (const { port } of others) await first?.control.call("CLUSTER", "MEET", HOST, port);
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  while (!(await Promise.all(servers.map((server) => isWhole(server, servers.length)))).every(Boolean)) {
    if (performance.now() > giveUpAtMs) throw new Error(`${servers.length} servers did not become a cluster`);
    await sleep(LOOK_MS);
  }
}

/** Whether this one serves, and knows who has which slot. */
async function isWhole({ control }: Server, masters: number): Promise<boolean> {
  const info = String(await control.call("CLUSTER", "INFO"));
  return ["cluster_state:ok", `cluster_slots_ok:${SLOTS}`, `cluster_size:${masters}`].every((line) =>
    info.includes(`${line}\r`),
  );
}
