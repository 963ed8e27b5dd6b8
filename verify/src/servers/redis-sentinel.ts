/**
 * A master, its replicas and three sentinels for tests: on free loopback ports, removed at the end.
 *
 * Sentinels store their state in their configuration file, so each has its own file.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { type RedisServer, startRedis } from "./redis-server.js";

/** A timeout for servers that never agree; it does not measure speed. */
const PATIENCE_MS = 30_000;
const PROBE_EVERY_MS = 20;

/** The options. */
export interface RedisSentinelOptions {
  /** @default 2 */
  readonly replicas?: number;
  /** After how long a silent master counts as down, in ms. @default 500 */
  readonly downAfterMs?: number;
  /** Additional arguments for each redis-server, but not for sentinels. */
  readonly args?: readonly string[];
}

/** A server; its id is its port, by which sentinels identify it. */
export interface SentinelNode extends RedisServer {
  readonly id: string;
}

/** A master with replicas and three sentinels. */
export interface RedisSentinel {
  /** The sentinels' name for the master. */
  readonly name: string;
  /** The servers, with the initial master first. */
  readonly nodes: readonly SentinelNode[];
  readonly sentinels: readonly SentinelNode[];
  /** Addresses of the sentinels, for clients. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  /** A server or a sentinel. @throws Error  unknown id */
  node(id: string): SentinelNode;
  /** The current master, when a majority of the sentinels agrees on it. */
  master(): Promise<SentinelNode>;
  /** Changes after how long a silent master counts as down, in ms. */
  setDownAfter(ms: number): Promise<void>;
  /** Makes the sentinels elect another master. @returns the new master */
  failover(): Promise<SentinelNode>;
  /** Resolves when the sentinels know each other and all replicas, and each running replica follows the master. */
  settled(): Promise<void>;
  /** Stops all servers. */
  stop(): Promise<void>;
}

const NAME = "holdfast";

/** Starts a master, its replicas and three sentinels. */
export async function startSentinel(options: RedisSentinelOptions = {}): Promise<RedisSentinel> {
  const { replicas = 2, downAfterMs = 500, args = [] } = options;
  const flags = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", ...args];
  const started: SentinelNode[] = [];
  const start = async (...given: Parameters<typeof startRedis>): Promise<SentinelNode> => {
    const server = await startRedis(...given);
    const node = Object.defineProperty(server as SentinelNode, "id", { value: `${server.port}`, enumerable: true });
    started.push(node);
    return node;
  };
  try {
    // Needs a configuration file, in which sentinels make a server store its master for a restart.
    const first = await start({ args: flags, configFile: "" });
    const others = Array.from({ length: replicas }, () => start({ args: flags, configFile: "" }));
    const watch = [
      `sentinel monitor ${NAME} 127.0.0.1 ${first.port} 2`,
      `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
      // How long a failover may take before another one may begin; consecutive failovers must wait for it.
      `sentinel failover-timeout ${NAME} 3000`,
      `sentinel parallel-syncs ${NAME} 5`,
    ].join("\n");
    const nodes = [first, ...(await settle(others))];
    // Uses a command instead of an argument, because the argument would apply again after a restart, when the server
    // may be master.
    await Promise.all(nodes.slice(1).map((node) => node.command("REPLICAOF", "127.0.0.1", first.port)));
    const sentinels = await settle(
      Array.from({ length: 3 }, () => start({ args: ["--sentinel"], configFile: `${watch}\n` })),
    );
    const topology = topologyOf(nodes, sentinels);
    await topology.settled();
    return topology;
  } catch (error) {
    await Promise.all(started.map((node) => node.stop()));
    throw error;
  }
}

/** All results, or the first failure after all have settled. */
async function settle(starting: readonly Promise<SentinelNode>[]): Promise<SentinelNode[]> {
  const ends = await Promise.allSettled(starting);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return Promise.all(starting);
}

function topologyOf(nodes: readonly SentinelNode[], sentinels: readonly SentinelNode[]): RedisSentinel {
  const node = (id: string): SentinelNode => {
    const found = [...nodes, ...sentinels].find((one) => one.id === id);
    if (found === undefined) throw new Error(`there is no node ${id}`);
    return found;
  };
  const masterPort = async (): Promise<string | undefined> => {
    const says = await Promise.all(
      sentinels.map((one) => one.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME).catch(() => undefined)),
    );
    const ports = says.map((address) => (Array.isArray(address) ? String(address[1]) : ""));
    return ports.find((port) => port !== "" && ports.filter((other) => other === port).length >= 2);
  };
  async function master(): Promise<SentinelNode> {
    let port: string | undefined;
    await until("most sentinels agree on one master", async () => {
      port = await masterPort();
      return port !== undefined;
    });
    return node(port ?? "");
  }
  const settled = (): Promise<void> =>
    until("sentinels and servers agree", async () => {
      const port = await masterPort();
      if (port === undefined) return false;
      const facts = await Promise.all(sentinels.map((one) => one.command("SENTINEL", "MASTER", NAME).catch(() => [])));
      const isKnown = facts.every((fact) => {
        const [others, replicas, flags] = ["num-other-sentinels", "num-slaves", "flags"].map((word) =>
          field(fact, word),
        );
        return flags === "master" && Number(others) === sentinels.length - 1 && Number(replicas) >= nodes.length - 1;
      });
      const roles = await Promise.all(
        nodes.map((one) => one.command("INFO", "replication").then(String, () => "not running")),
      );
      const isRight = nodes.every(({ id }, i) => {
        const role = roles[i] ?? "";
        if (role === "not running") return id !== port;
        if (id === port) return role.includes("role:master");
        return role.includes(`master_port:${port}`) && role.includes("master_link_status:up");
      });
      return isKnown && isRight;
    });
  return {
    name: NAME,
    nodes,
    sentinels,
    addresses: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })),
    node,
    master,
    async setDownAfter(ms) {
      await Promise.all(
        sentinels.map((one) => one.command("SENTINEL", "SET", NAME, "down-after-milliseconds", ms).catch(() => {})),
      );
    },
    async failover() {
      const old = await master();
      await until("a failover begins", async () => {
        const answer = await sentinels[0]?.command("SENTINEL", "FAILOVER", NAME).catch(() => undefined);
        return answer === "OK";
      });
      await until("another master is named", async () => {
        const port = await masterPort();
        return port !== undefined && port !== old.id;
      });
      return master();
    },
    settled,
    async stop() {
      // Stops the sentinels first, because they would start a failover.
      await Promise.all(sentinels.map((one) => one.stop()));
      await Promise.all(nodes.map((one) => one.stop()));
    },
  };
}

/** Reads a field from a flat list of names and values. */
function field(list: unknown, name: string): string {
  if (!Array.isArray(list)) return "";
  return String(list[list.indexOf(name) + 1]);
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > giveUpAtMs) throw new Error(`timed out waiting until ${what}`);
    await sleep(PROBE_EVERY_MS);
  }
}
