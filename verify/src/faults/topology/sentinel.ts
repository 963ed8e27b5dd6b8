/**
 * Column T: a master, two replicas and three sentinels. Sentinels connect to the servers directly, clients through
 * proxies.
 */

import type { ReplicaControls, ServerHandle, Topology } from "../stage.js";
import { ask } from "./ask.js";
import { type Sides, startLines, until } from "./lines.js";
import { type OwnServer, startServer } from "./server.js";
import type { TopologyOptions } from "./topology.js";

const NAME = "holdfast";
const REPLICAS = 2;
const SENTINELS = 3;
/** The number of sentinels that must agree. */
const QUORUM = 2;
/** Longer than any run, so that a failover happens only by command. */
const NEVER_MS = 600_000;
/** How long a failover may take before another one may begin. */
const FAILOVER_TIMEOUT_MS = 3_000;

/** Starts all servers. @throws Error  one did not start; then none is left running */
export async function startSentinel(options: TopologyOptions): Promise<Topology> {
  const { durability, serverArguments = [], needsClockShim = false, needsSyncShim = false } = options;
  const started: OwnServer[] = [];
  const start = async (...given: Parameters<typeof startServer>): Promise<OwnServer> => {
    const server = await startServer(...given);
    started.push(server);
    return server;
  };
  let lines: Sides | undefined;
  const stop = async (): Promise<void> => {
    await lines?.close();
    // Stop the sentinels first, because they would begin a failover.
    for (const server of started.toReversed()) await server.stop();
  };
  try {
    const flags = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", ...serverArguments];
    const servers = await all(1 + REPLICAS, (index) =>
      start({
        name: `server ${index}`,
        durability,
        args: flags,
        // Needs a configuration file, in which sentinels make a server store its master for a restart.
        configFile: "",
        hasClockShim: needsClockShim,
        hasSyncShim: needsSyncShim,
      }),
    );
    const [first, ...others] = servers as [OwnServer, ...OwnServer[]];
    for (const other of others) await other.command("REPLICAOF", "127.0.0.1", first.port);
    const configFile = [
      `sentinel monitor ${NAME} 127.0.0.1 ${first.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${NAME} ${options.failsOverAfterMs ?? NEVER_MS}`,
      `sentinel failover-timeout ${NAME} ${FAILOVER_TIMEOUT_MS}`,
      `sentinel parallel-syncs ${NAME} 5\n`,
    ].join("\n");
    const sentinels = await all(SENTINELS, (index) =>
      start({ name: `sentinel ${index}`, durability: "1n", args: ["--sentinel"], configFile }),
    );
    lines = await startLines(servers, options);
    const watched = new Watched(servers, sentinels, lines);
    await watched.settled();
    return topologyOf(watched, lines, { needsClockShim, needsSyncShim, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

function topologyOf(
  watched: Watched,
  lines: Sides,
  { needsClockShim, needsSyncShim, stop }: { needsClockShim: boolean; needsSyncShim: boolean; stop(): Promise<void> },
): Topology {
  return {
    servers: watched.servers,
    get port() {
      return lines.to(watched.present).port;
    },
    get proxy() {
      return lines.to(watched.present);
    },
    get target() {
      return watched.present;
    },
    hasClockShim: needsClockShim,
    hasSyncShim: needsSyncShim,
    reachOf: (index) => ({
      by: "sentinel",
      name: NAME,
      sentinels: watched.sentinels.map(({ port }) => port),
      lines: lines.linesOf(index),
    }),
    replicas: watched,
    stop,
  };
}

async function all(count: number, start: (index: number) => Promise<OwnServer>): Promise<OwnServer[]> {
  const ends = await Promise.allSettled(Array.from({ length: count }, (_, index) => start(index)));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
}

class Watched implements ReplicaControls {
  readonly servers: readonly OwnServer[];
  readonly sentinels: readonly OwnServer[];
  readonly #lines: Sides;
  #present: OwnServer;

  constructor(servers: readonly OwnServer[], sentinels: readonly OwnServer[], lines: Sides) {
    this.servers = servers;
    this.sentinels = sentinels;
    this.#lines = lines;
    this.#present = servers[0] as OwnServer;
  }

  /** The master, as last known here. */
  get present(): ServerHandle {
    return this.#present;
  }

  async masters(): Promise<readonly ServerHandle[]> {
    return [await this.master()];
  }

  async master(): Promise<ServerHandle> {
    let port: number | undefined;
    await until("most sentinels agree on one master", async () => {
      port = await this.#named();
      return port !== undefined;
    });
    return this.#at(port);
  }

  async replicas(): Promise<readonly ServerHandle[]> {
    const { port } = await this.master();
    return this.servers.filter((server) => server.port !== port && isRunning(server));
  }

  isOnFirst(): boolean {
    return true;
  }

  async handOver(): Promise<ServerHandle> {
    const old = await this.master();
    await this.#begin();
    return this.succeeded(old);
  }

  async succeeded(old: ServerHandle): Promise<ServerHandle> {
    await until("sentinels name another master, which has taken over", async () => {
      const port = await this.#named();
      if (port === undefined || port === old.port) return false;
      return String(await ask(port, ["ROLE"]).catch(() => "")).startsWith("master");
    });
    return this.master();
  }

  async rejoin(server: ServerHandle): Promise<void> {
    await server.restart();
    const { port } = await this.master();
    if (server.port !== port) await server.command("REPLICAOF", "127.0.0.1", port);
    await this.settled();
  }

  async split(): Promise<ServerHandle> {
    const [old, next] = [this.#present, this.servers.find((server) => server !== this.#present)];
    if (next === undefined) throw new Error("there is no replica");
    // The sentinels would correct it, but only after eight seconds.
    await next.command("REPLICAOF", "NO", "ONE");
    this.#lines.divert(old, next);
    return next;
  }

  async heal(): Promise<void> {
    const old = this.#present;
    for (const server of this.servers) {
      if (server !== old) await server.command("REPLICAOF", "127.0.0.1", old.port);
    }
    this.#lines.divert(old, old);
    await this.settled();
  }

  settled(): Promise<void> {
    return until("sentinels and servers agree", async () => {
      const port = await this.#named();
      if (port === undefined) return false;
      const facts = await Promise.all(
        this.sentinels.map((one) => one.command("SENTINEL", "MASTER", NAME).catch(() => [])),
      );
      const isKnown = facts.every((fact) => {
        const [others, replicas] = ["num-other-sentinels", "num-slaves"].map((word) => Number(field(fact, word)));
        return others === SENTINELS - 1 && (replicas ?? 0) >= REPLICAS;
      });
      const roles = await Promise.all(
        this.servers.map((one) => one.command("INFO", "replication").then(String, () => "")),
      );
      return (
        isKnown &&
        this.servers.every((server, index) =>
          server.port === port
            ? roles[index]?.includes("role:master")
            : roles[index]?.includes(`master_port:${port}`) && roles[index]?.includes("master_link_status:up"),
        )
      );
    });
  }

  /** Makes the sentinels elect another master, whether or not the current one is down. */
  async #begin(): Promise<void> {
    await until("a failover begins", async () => {
      const answer = await this.sentinels[0]?.command("SENTINEL", "FAILOVER", NAME).catch(() => undefined);
      return answer === "OK";
    });
  }

  async #named(): Promise<number | undefined> {
    const says = await Promise.all(
      this.sentinels.map((one) => one.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME).catch(() => undefined)),
    );
    const ports = says.map((address) => (Array.isArray(address) ? Number(address[1]) : Number.NaN));
    const named = ports.find((port) => ports.filter((other) => other === port).length >= QUORUM);
    if (named !== undefined) this.#present = this.#at(named);
    return named;
  }

  #at(port: number | undefined): OwnServer {
    const server = this.servers.find((one) => one.port === port);
    if (server === undefined) throw new Error(`no server has the port ${port}`);
    return server;
  }
}

/** Reads a field from a flat list of names and values. */
function field(list: unknown, name: string): string {
  return Array.isArray(list) ? String(list[list.indexOf(name) + 1]) : "";
}

/** Whether its process exists. */
export function isRunning({ pid }: Pick<ServerHandle, "pid">): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}
