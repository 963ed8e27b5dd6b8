/** Servers with the connections by which clients reach them, for one run of a cell. */

import type { Random } from "../../simulation/random.js";
import type { FaultProxy, Topology } from "../stage.js";
import type { Exchange } from "./exchange.js";
import { startProxy } from "./proxy.js";
import { type Durability, type OwnServer, startServer } from "./server.js";

/** The options of every topology. */
export interface TopologyOptions {
  readonly durability: Durability;
  /** Additional arguments of redis-server. */
  readonly serverArguments?: readonly string[];
  readonly needsClockShim?: boolean;
  readonly needsSyncShim?: boolean;
  /** Decides which messages a proxy drops. */
  readonly random?: Random;
  /** After how long the others consider a silent master dead, in ms. */
  readonly failsOverAfterMs?: number;
  /** Whether clients with odd indexes have separate proxies, which can lead to other servers. */
  readonly hasTwoSides?: boolean;
}

/** The options of a topology with one server. */
export interface SingleOptions extends TopologyOptions {
  readonly onExchange?: (exchange: Exchange) => void;
}

/** One server behind one proxy. */
export interface SingleTopology extends Topology {
  readonly servers: readonly [OwnServer];
  readonly hasSyncShim: boolean;
}

/** Starts a server with a proxy in front of it. @throws Error  see `startServer` */
export async function startSingle(options: SingleOptions): Promise<SingleTopology> {
  const { durability, serverArguments = [], needsClockShim = false, needsSyncShim = false } = options;
  const server = await startServer({
    name: "server",
    durability,
    args: serverArguments,
    hasClockShim: needsClockShim,
    hasSyncShim: needsSyncShim,
  });
  const { random, onExchange } = options;
  let proxy: FaultProxy;
  try {
    proxy = await startProxy({
      targetPort: server.port,
      ...(random === undefined ? {} : { random }),
      ...(onExchange === undefined ? {} : { onExchange }),
    });
  } catch (error) {
    await server.stop();
    throw error;
  }
  return {
    servers: [server],
    port: proxy.port,
    proxy,
    hasClockShim: needsClockShim,
    hasSyncShim: needsSyncShim,
    async stop() {
      await proxy.close();
      await server.stop();
    },
  };
}
