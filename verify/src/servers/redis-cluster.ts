/**
 * A Redis Cluster for tests: masters with one replica each, on free loopback ports, removed at the end.
 *
 * It is set up with direct commands, which takes half the time of `redis-cli --cluster create`. A new cluster always
 * refuses writes for two seconds, so start one per test file and share it.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { NODES_BELOW_PORT } from "../faults/topology/ask.js";
import { Elections } from "./cluster-election.js";
import { type NodeLine, ownerIn, parse, viewIfWell } from "./cluster-view.js";
import { type RedisServer, startRedis } from "./redis-server.js";

const SLOTS = 16_384;
/** A timeout for a cluster that never becomes ready; it does not measure speed. */
const PATIENCE_MS = 30_000;
const PROBE_EVERY_MS = 20;
const FORMING_TIMEOUT_MS = 1_000;

/** The options of a cluster. */
export interface RedisClusterOptions {
  /** @default 3 */
  readonly masters?: number;
  /** After how long a silent node counts as failed, in ms. @default 1000 */
  readonly nodeTimeoutMs?: number;
  /** Additional arguments for each redis-server. */
  readonly args?: readonly string[];
}

/** A server of the cluster. */
export interface ClusterNode extends RedisServer {
  /** Its id in the cluster, which survives restarts. */
  readonly id: string;
}

/** A running cluster. */
export interface RedisCluster {
  /** All masters, then their replicas in the same order. */
  readonly nodes: readonly ClusterNode[];
  /** Ports of the nodes that clients connect to first. */
  readonly ports: readonly number[];
  /** @throws Error  unknown id */
  node(id: string): ClusterNode;
  /** The node that serves a slot, according to the queried node. */
  masterOf(slot: number): Promise<ClusterNode>;
  /** The current masters. */
  masters(): Promise<ClusterNode[]>;
  /** The current replicas of a master. */
  replicasOf(master: ClusterNode): Promise<ClusterNode[]>;
  /** Promotes a replica for `slot` in agreement with its master, without loss. @returns the new master */
  failover(slot: number): Promise<ClusterNode>;
  /** Moves a slot with all its keys, key by key, like `redis-cli --cluster reshard`. */
  moveSlot(slot: number, to: ClusterNode, between?: () => Promise<unknown>): Promise<void>;
  /** Resolves when all running nodes report a healthy cluster, and each replica has its master's data. */
  settled(): Promise<void>;
  /** Ends all nodes. */
  stop(): Promise<void>;
}

/** Starts a cluster and waits until it accepts writes. */
export async function startCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  const { masters = 3, nodeTimeoutMs = 1_000, args = [] } = options;
  const flags = [
    ...["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"],
    ...["--cluster-node-timeout", `${nodeTimeoutMs}`, "--cluster-allow-replica-migration", "no"],
    // A replica may be promoted even if it lags, and gets its data immediately.
    ...["--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"],
    ...args,
  ];
  const started = await Promise.allSettled(
    Array.from({ length: 2 * masters }, () => startRedis({ belowPort: NODES_BELOW_PORT, args: flags })),
  );
  const servers = started.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  try {
    const failure = started.find((start) => start.status === "rejected");
    if (failure !== undefined) throw failure.reason;
    const nodes = await Promise.all(servers.map(nodeOf));
    // Short, because nodes exchange their knowledge at this interval.
    const wait = (ms: number): Promise<unknown> =>
      Promise.all(nodes.map((node) => node.command("CONFIG", "SET", "cluster-node-timeout", ms)));
    await wait(Math.min(nodeTimeoutMs, FORMING_TIMEOUT_MS));
    await form(nodes, masters);
    const cluster = clusterOf(nodes, nodeTimeoutMs);
    await cluster.settled();
    await wait(nodeTimeoutMs);
    return cluster;
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()));
    throw error;
  }
}

async function nodeOf(server: RedisServer): Promise<ClusterNode> {
  const id = String(await server.command("CLUSTER", "MYID"));
  return Object.defineProperty(server as ClusterNode, "id", { value: id, enumerable: true });
}

async function form(nodes: readonly ClusterNode[], masters: number): Promise<void> {
  const [first, ...others] = nodes as [ClusterNode, ...ClusterNode[]];
  await Promise.all(
    nodes.map(async (node, i) => {
      // Otherwise each node considers itself the newest, and they have to resolve that first.
      await node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1);
      if (i >= masters) return;
      const from = Math.floor((i * SLOTS) / masters);
      const end = Math.floor(((i + 1) * SLOTS) / masters);
      // Uses ADDSLOTS because ADDSLOTSRANGE needs Redis 7.
      await node.command("CLUSTER", "ADDSLOTS", ...Array.from({ length: end - from }, (_, at) => from + at));
    }),
  );
  for (const node of others) await first.command("CLUSTER", "MEET", "127.0.0.1", node.port);
  for (const [i, node] of nodes.slice(masters).entries()) {
    const { id } = nodes[i] as ClusterNode;
    // Refused until the node knows its master.
    await until(async () => (await node.command("CLUSTER", "REPLICATE", id).catch(() => "not yet")) === "OK");
  }
}

function clusterOf(nodes: readonly ClusterNode[], nodeTimeoutMs: number): RedisCluster {
  const elections = new Elections(nodeTimeoutMs);
  const node = (id: string): ClusterNode => {
    const found = nodes.find((one) => one.id === id);
    if (found === undefined) throw new Error(`there is no node ${id}`);
    return found;
  };
  const masterOf = async (slot: number): Promise<ClusterNode> => {
    let owner: NodeLine | undefined;
    await until(async () => {
      owner = ownerIn(await view(nodes), slot);
      return owner !== undefined;
    });
    return node(owner?.id ?? "");
  };
  const replicasOf = async ({ id }: ClusterNode): Promise<ClusterNode[]> =>
    (await view(nodes)).filter(({ master }) => master === id).map((line) => node(line.id));
  return {
    nodes,
    ports: nodes.map(({ port }) => port),
    node,
    masterOf,
    async masters() {
      const lines = await view(nodes);
      return lines
        .filter((line) => line.slots.some(([from]) => ownerIn(lines, from) === line))
        .map(({ id }) => node(id));
    },
    replicasOf,
    async failover(slot) {
      const master = await masterOf(slot);
      const [replica] = await replicasOf(master);
      if (replica === undefined) throw new Error(`node ${master.id} has no replica`);
      await elections.elect(replica, until, async () => (await masterOf(slot)).id === replica.id);
      // In Redis 6.2, scripts may wait for up to 10 s on a master that has handed over. Other versions reply
      // immediately.
      await master.command("EVAL", "return 1", 0).catch(() => {});
      return replica;
    },
    async moveSlot(slot, to, between = async () => {}) {
      const from = await masterOf(slot);
      // Right after a failover, nodes may not know the new master, or that the cluster is up again.
      const asSoonAsKnown = (run: () => Promise<unknown>): Promise<void> =>
        until(() =>
          run().then(
            () => true,
            (error: unknown) => {
              if (/Target node is not a master|CLUSTERDOWN/.test(String(error))) return false;
              throw error;
            },
          ),
        );
      const set = (one: Pick<ClusterNode, "command">, ...words: string[]): Promise<void> =>
        asSoonAsKnown(() => one.command("CLUSTER", "SETSLOT", slot, ...words));
      // In Redis 6.2, a node ignores all updates about the owner of a slot while it imports the slot.
      await until(async () => {
        const lines = parse(String(await to.command("CLUSTER", "NODES")));
        return ownerIn(lines, slot)?.id === from.id;
      });
      await set(to, "IMPORTING", from.id);
      await set(from, "MIGRATING", to.id);
      for (;;) {
        const keys = (await from.command("CLUSTER", "GETKEYSINSLOT", slot, 100)) as string[];
        if (keys.length === 0) break;
        for (const key of keys) {
          await asSoonAsKnown(() => from.command("MIGRATE", "127.0.0.1", to.port, key, 0, 5_000));
          await between();
        }
      }
      await between();
      await set(to, "NODE", to.id);
      await set(from, "NODE", to.id);
      // Tells the other nodes now instead of waiting for gossip.
      for (const other of (await view(nodes)).filter(
        ({ slots, id }) => slots.length > 0 && id !== to.id && id !== from.id,
      )) {
        await set(node(other.id), "NODE", to.id);
      }
    },
    settled: () =>
      until(async () => {
        const views = await Promise.all(nodes.filter(isRunning).map((one) => viewIfWell(one, nodes.length)));
        // A master that returns still considers itself master.
        return views[0] !== undefined && views.every((one) => one === views[0]);
      }),
    async stop() {
      await Promise.all(nodes.map((one) => one.stop()));
    },
  };
}

/** The timeout for a reply of a live node. */
const ANSWER_MS = 2_000;

/** What each reachable node reports about itself, newest claim first. Nodes know less about each other. */
async function view(nodes: readonly ClusterNode[]): Promise<NodeLine[]> {
  const asked = nodes.filter(isRunning).map(async (node) => {
    const late = sleep(ANSWER_MS, "", { ref: false });
    const text = await Promise.race([node.command("CLUSTER", "NODES").catch(() => ""), late]);
    return parse(String(text)).filter(({ isItself }) => isItself);
  });
  return (await Promise.all(asked)).flat().toSorted((a, b) => b.epoch - a.epoch);
}

function isRunning({ pid }: ClusterNode): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Polls until the condition is true. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > giveUpAtMs) throw new Error("the cluster did not reach the awaited state");
    await sleep(PROBE_EVERY_MS);
  }
}
