/**
 * A Redis Cluster for one run: masters without replicas that share all slots evenly.
 *
 * It is set up with commands to the servers, because redis-cli may not be installed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Server, startServers, stopAll } from "./server.js";

const HOST = "127.0.0.1";
const FLAGS = [
  ...["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"],
  // A node that has not met another node does not know its own address, so it cannot tell it to clients.
  ...["--cluster-announce-ip", HOST],
];
/** Nodes talk to each other on this port + 10,000, which must be a valid port too. */
const BELOW_PORT = 55_536;
const SLOTS = 16_384;
const LOOK_MS = 20;
/** Limit for a cluster that never starts. A new cluster refuses all commands for two seconds. */
const PATIENCE_MS = 30_000;

/**
 * Starts this many masters and waits until the cluster serves all slots.
 *
 * @throws Error  it does not serve them in time; all masters have been stopped
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
    // Without this, all nodes start with the same epoch and must first resolve the conflict.
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

/** Whether this node serves commands and knows the master of every slot. */
async function isWhole({ control }: Server, masters: number): Promise<boolean> {
  const info = String(await control.call("CLUSTER", "INFO"));
  return ["cluster_state:ok", `cluster_slots_ok:${SLOTS}`, `cluster_size:${masters}`].every((line) =>
    info.includes(`${line}\r`),
  );
}
