/** Column C: three masters with one replica each. Nodes connect directly, clients through proxies. */

import { Elections } from "../../servers/cluster-election.js";
import { type NodeLine, ownerIn, parse, viewIfWell } from "../../servers/cluster-view.js";
import type { ReplicaControls, ServerHandle, Topology } from "../stage.js";
import { NODES_BELOW_PORT } from "./ask.js";
import { type Sides, startLines, until } from "./lines.js";
import { isRunning } from "./sentinel.js";
import { type OwnServer, startServer } from "./server.js";
import { slotOf } from "./slots.js";
import type { TopologyOptions } from "./topology.js";

const MASTERS = 3;
const SLOTS = 16_384;
/** Longer than any fault that must not cause a failover. Intended failovers are started by command. */
const NEVER_MS = 15_000;

interface Node extends OwnServer {
  /** Its id in the cluster, which survives restarts. */
  id: string;
}

/** Starts all nodes. @throws Error  one did not start, or they did not agree; then none is left running */
export async function startCluster(options: TopologyOptions): Promise<Topology> {
  const { durability, serverArguments = [], needsClockShim = false, needsSyncShim = false } = options;
  const nodeTimeoutMs = options.failsOverAfterMs ?? NEVER_MS;
  const args = [
    ...["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"],
    ...["--cluster-node-timeout", `${nodeTimeoutMs}`],
    ...["--cluster-allow-replica-migration", "no", "--cluster-replica-validity-factor", "0"],
    ...["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"],
    ...serverArguments,
  ];
  const nodes: Node[] = [];
  let lines: Sides | undefined;
  const stop = async (): Promise<void> => {
    await lines?.close();
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    for (let index = 0; index < 2 * MASTERS; index += 1) {
      const choices = { hasClockShim: needsClockShim, hasSyncShim: needsSyncShim, belowPort: NODES_BELOW_PORT };
      const server = await startServer({ name: `node ${index}`, durability, args, ...choices });
      const id = String(await server.command("CLUSTER", "MYID"));
      nodes.push(Object.assign(server, { id }));
    }
    await form(nodes);
    for (const node of nodes) restartsWhole(node);
    lines = await startLines(nodes, options);
    const joined = new Joined(nodes, lines, nodeTimeoutMs);
    await joined.settled();
    const sides = lines;
    return {
      servers: nodes,
      get port() {
        return sides.to(joined.present).port;
      },
      get proxy() {
        return sides.to(joined.present);
      },
      get target() {
        return joined.present;
      },
      hasClockShim: needsClockShim,
      hasSyncShim: needsSyncShim,
      reachOf: (index) => ({ by: "cluster", lines: sides.linesOf(index) }),
      replicas: joined,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Makes `restart` also wait for the two seconds in which a restarted node refuses everything but PING. */
function restartsWhole(node: Node): void {
  const restart = node.restart.bind(node);
  node.restart = async () => {
    await restart();
    await until(`${node.name} serves again`, async () =>
      String(await node.command("CLUSTER", "INFO")).includes("cluster_state:ok"),
    );
  };
}

/** Forms the cluster with direct commands, which takes half the time of redis-cli. */
async function form(nodes: readonly Node[]): Promise<void> {
  const [first, ...others] = nodes as [Node, ...Node[]];
  for (const [index, node] of nodes.entries()) {
    // Otherwise each node considers itself the newest, and they have to resolve that first.
    await node.command("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
    if (index >= MASTERS) continue;
    const [from, to] = [index, index + 1].map((place) => Math.floor((place * SLOTS) / MASTERS)) as [number, number];
    // Uses ADDSLOTS because ADDSLOTSRANGE needs Redis 7.
    await node.command("CLUSTER", "ADDSLOTS", ...Array.from({ length: to - from }, (_, at) => from + at));
  }
  for (const node of others) await first.command("CLUSTER", "MEET", "127.0.0.1", node.port);
  for (const [index, node] of nodes.slice(MASTERS).entries()) {
    const { id } = nodes[index] as Node;
    // Refused until the node knows its master.
    await until("a replica follows", async () => {
      return (await node.command("CLUSTER", "REPLICATE", id).catch(() => "not yet")) === "OK";
    });
  }
}

class Joined implements ReplicaControls {
  readonly #nodes: readonly Node[];
  readonly #lines: Sides;
  readonly #elections: Elections;
  /** The current master of the first node's initial slots. */
  #present: Node;

  constructor(nodes: readonly Node[], lines: Sides, nodeTimeoutMs: number) {
    this.#elections = new Elections(nodeTimeoutMs);
    this.#nodes = nodes;
    this.#lines = lines;
    this.#present = nodes[0] as Node;
  }

  get present(): ServerHandle {
    return this.#present;
  }

  async masters(): Promise<readonly ServerHandle[]> {
    const lines = await this.#view();
    return lines
      .filter((line) => line.slots.some(([from]) => ownerIn(lines, from) === line))
      .map(({ id }) => this.#node(id));
  }

  async master(): Promise<ServerHandle> {
    let owner: NodeLine | undefined;
    await until("a node serves the first slot", async () => {
      owner = ownerIn(await this.#view(), 0);
      return owner !== undefined;
    });
    this.#present = this.#node(owner?.id ?? "");
    return this.#present;
  }

  async replicas(): Promise<readonly ServerHandle[]> {
    await this.master();
    return (await this.#view()).filter(({ master }) => master === this.#present.id).map(({ id }) => this.#node(id));
  }

  isOnFirst(lockName: string): boolean {
    return slotOf(lockName) < Math.floor(SLOTS / MASTERS);
  }

  async handOver(): Promise<ServerHandle> {
    const old = this.#present;
    const lines = await this.#view();
    const replica = this.#nodes.find((node) => lines.some(({ id, master }) => id === node.id && master === old.id));
    if (replica === undefined) throw new Error(`${old.name} has no replica`);
    const hasWon = async (): Promise<boolean> => (await this.master()).port === replica.port;
    const patience = (isSo: () => Promise<boolean>): Promise<void> => until("the replica takes over", isSo);
    if (isRunning(old)) await this.#elections.elect(replica, patience, hasWon);
    else {
      await replica.command("CLUSTER", "FAILOVER", "TAKEOVER");
      await patience(hasWon);
    }
    this.#present = replica;
    return replica;
  }

  async succeeded(old: ServerHandle): Promise<ServerHandle> {
    await until("another serves the slots", async () => (await this.master()).port !== old.port);
    return this.#present;
  }

  async rejoin(server: ServerHandle): Promise<void> {
    await server.restart();
    await this.settled();
  }

  async split(): Promise<ServerHandle> {
    const old = this.#present;
    const [next] = (await this.replicas()) as Node[];
    if (next === undefined) throw new Error(`${old.name} has no replica`);
    // During the split it does not see all slots, but must serve its own.
    await old.command("CONFIG", "SET", "cluster-require-full-coverage", "no");
    // Makes the two sides ignore each other for a minute.
    for (const node of this.#nodes) {
      if (node === old) continue;
      await old.command("CLUSTER", "FORGET", node.id);
      if (node !== next) await node.command("CLUSTER", "FORGET", old.id);
    }
    await next.command("CLUSTER", "FAILOVER", "TAKEOVER");
    await until("the replica takes over", async () => String(await next.command("ROLE")).startsWith("master"));
    await next.command("CLUSTER", "FORGET", old.id);
    this.#lines.divert(old, next);
    return next;
  }

  async heal(): Promise<void> {
    const old = this.#present;
    // The other nodes ignore it for a minute, so it rejoins as a new node.
    await old.command("FLUSHALL");
    await old.command("CLUSTER", "RESET", "HARD");
    await old.command("CONFIG", "SET", "cluster-require-full-coverage", "yes");
    old.id = String(await old.command("CLUSTER", "MYID"));
    const next = await this.master();
    for (const node of this.#nodes) if (node !== old) await node.command("CLUSTER", "MEET", "127.0.0.1", old.port);
    await until("the old master follows", async () => {
      return (await old.command("CLUSTER", "REPLICATE", (next as Node).id).catch(() => "not yet")) === "OK";
    });
    this.#lines.divert(old, old);
    await this.settled();
  }

  settled(): Promise<void> {
    return until("the nodes agree", async () => {
      const views = await Promise.all(this.#nodes.map((node) => viewIfWell(node, this.#nodes.length)));
      return views[0] !== undefined && views.every((one) => one === views[0]);
    });
  }

  async moveSlot(lockName: string, between: () => Promise<void>): Promise<number> {
    const slot = slotOf(lockName);
    const lines = await this.#view();
    const from = this.#node(ownerIn(lines, slot)?.id ?? "");
    const others = ((await this.masters()) as Node[]).filter((master) => master !== from);
    const [to] = others;
    if (to === undefined) throw new Error("there is no other master");
    await to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id);
    await from.command("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id);
    let moved = 0;
    for (;;) {
      const keys = (await from.command("CLUSTER", "GETKEYSINSLOT", slot, 100)) as string[];
      if (keys.length === 0) break;
      for (const key of keys) {
        await from.command("MIGRATE", "127.0.0.1", to.port, key, 0, 5_000);
        moved += 1;
        await between();
      }
    }
    await between();
    for (const node of [to, from, ...others.slice(1)]) await node.command("CLUSTER", "SETSLOT", slot, "NODE", to.id);
    return moved;
  }

  #node(id: string): Node {
    const found = this.#nodes.find((node) => node.id === id);
    if (found === undefined) throw new Error(`there is no node ${id}`);
    return found;
  }

  /** What each running node reports about itself, newest claim first. Nodes know less about each other. */
  async #view(): Promise<NodeLine[]> {
    const asked = this.#nodes.filter(isRunning).map(async (node) => {
      const text = await node.command("CLUSTER", "NODES").catch(() => "");
      return parse(String(text)).filter(({ isItself }) => isItself);
    });
    return (await Promise.all(asked)).flat().toSorted((a, b) => b.epoch - a.epoch);
  }
}
