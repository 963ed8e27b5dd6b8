/** Servers, and the lines by which clients reach them, for one run of one cell. */

import type { Random } from "../../simulation/random.js";
import type { FaultProxy, Topology } from "../stage.js";
import type { Exchange } from "./exchange.js";
import { startProxy } from "./proxy.js";
import { type Durability, type OwnServer, startServer } from "./server.js";

/** What the servers of any topology are to be. */
export interface TopologyOptions {
  readonly durability: Durability;
  /** More arguments of redis-server. */
  readonly serverArguments?: readonly string[];
  readonly needsClockShim?: boolean;
  readonly needsSyncShim?: boolean;
  /** Which messages a proxy drops is drawn from it. */
  readonly random?: Random;
  /** After how long the others take a silent master for dead, in ms. */
  readonly failsOverAfterMs?: number;
  /** Whether clients of odd places have lines of their own, which can lead past those of the others. */
  readonly hasTwoSides?: boolean;
}

/** What a topology of one server is to be. */
export interface SingleOptions extends TopologyOptions {
  readonly onExchange?: (exchange: Exchange) => void;
}

/** One server behind one proxy. */
export interface SingleTopology extends Topology {
  readonly servers: readonly [OwnServer];
  readonly hasSyncShim: boolean;
}

/** Starts one server, and a proxy before it. @throws Error  see `startServer` */
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
