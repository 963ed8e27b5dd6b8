/**
 * The connections of one process: its own proxy in front of each server, so that a fault can affect only this
 * process.
 */
import type { FaultProxy, Reach, ServerHandle, Topology } from "../stage.js";
import { startProxy } from "../topology/proxy.js";

const SUBSCRIBES = /^s?subscribe$/i;
const EVALUATES = /^(?:evalsha|eval|fcall)(?:_ro)?$/i;

/** The proxies of one process. Created by `openLines`. */
export class ProcessLines {
  /** When this process requested subscriptions. */
  readonly subscribedMs: number[] = [];
  /** How many times it called each script. */
  readonly scripts: Map<string, number> = new Map<string, number>();
  readonly #proxies = new Map<number, FaultProxy>();
  readonly #topology: Topology;

  /** Use `openLines`. */
  constructor(topology: Topology) {
    this.#topology = topology;
  }

  /** Starts the proxies. */
  async open(): Promise<void> {
    for (const { port } of this.#topology.servers) {
      const proxy = await startProxy({
        targetPort: port,
        onExchange: ({ sort, words: [command = "", script = ""], receivedMs }) => {
          if (sort !== "request") return;
          if (SUBSCRIBES.test(command)) this.subscribedMs.push(receivedMs);
          if (EVALUATES.test(command)) this.scripts.set(script, (this.scripts.get(script) ?? 0) + 1);
        },
      });
      this.#proxies.set(port, proxy);
    }
  }

  /** The port through which this process reaches that server. */
  portTo(server: ServerHandle): number {
    return this.#to(server).port;
  }

  /** How this process finds the servers. */
  reach(): Reach {
    const topology = this.#topology;
    const reach: Reach = topology.reachOf?.(0) ?? { by: "port" };
    if (reach.by !== "sentinel" && reach.by !== "cluster") return { by: "port" };
    const lines = Object.fromEntries(
      topology.servers.map((server) => [`127.0.0.1:${server.port}`, this.portTo(server)]),
    );
    return { ...reach, lines };
  }

  /** The number of connections so far. */
  get connections(): number {
    return [...this.#proxies.values()].reduce((sum, { counts }) => sum + (counts.connections ?? 0), 0);
  }

  /** Black-holes the open connections, optionally to one server only. @returns their number */
  silence(
    which: "subscribers" | "all",
    options: { readonly closesServerSide?: boolean; readonly server?: ServerHandle } = {},
  ): number {
    const { server, closesServerSide = false } = options;
    const proxies = server === undefined ? [...this.#proxies.values()] : [this.#to(server)];
    return proxies.reduce((sum, proxy) => sum + proxy.silence(which, { closesServerSide }), 0);
  }

  /** Drops every message from servers to this process from now on, including those on new connections. */
  swallowMessages(): void {
    for (const proxy of this.#proxies.values()) proxy.dropMessages(1);
  }

  /** The number of dropped messages. */
  get swallowed(): number {
    return [...this.#proxies.values()].reduce((sum, { counts }) => sum + (counts.droppedMessages ?? 0), 0);
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#proxies.values(), (proxy) => proxy.close()));
  }

  #to({ port }: ServerHandle): FaultProxy {
    const proxy = this.#proxies.get(port);
    if (proxy === undefined) throw new RangeError(`there is no line to port ${port}`);
    return proxy;
  }
}

/** Starts a proxy in front of each server of a topology. */
export async function openLines(topology: Topology): Promise<ProcessLines> {
  const lines = new ProcessLines(topology);
  await lines.open();
  return lines;
}
