/** Columns Q3 and Q5: independent servers, each behind its own proxy. */

import type { FaultProxy, Topology } from "../stage.js";
import { startProxy } from "./proxy.js";
import { type OwnServer, startServer } from "./server.js";
import type { TopologyOptions } from "./topology.js";

/** Starts that many servers. @throws Error  one did not start; then none is left running */
export async function startQuorum(count: number, options: TopologyOptions): Promise<Topology> {
  const { durability, serverArguments = [], needsClockShim = false, needsSyncShim = false, random } = options;
  const servers: OwnServer[] = [];
  const proxies: FaultProxy[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    for (let index = 0; index < count; index += 1) {
      const server = await startServer({
        name: `server ${index}`,
        durability,
        args: serverArguments,
        hasClockShim: needsClockShim,
        hasSyncShim: needsSyncShim,
      });
      servers.push(server);
      proxies.push(
        await startProxy({ targetPort: server.port, ...(random === undefined ? {} : { random: random.fork() }) }),
      );
    }
  } catch (error) {
    await stop();
    throw error;
  }
  let aimedAt = 0;
  return {
    servers,
    get port() {
      return (proxies[aimedAt] as FaultProxy).port;
    },
    get proxy() {
      return proxies[aimedAt] as FaultProxy;
    },
    get target() {
      return servers[aimedAt] as OwnServer;
    },
    hasClockShim: needsClockShim,
    hasSyncShim: needsSyncShim,
    reachOf: () => ({ by: "quorum", ports: proxies.map(({ port }) => port) }),
    quorum: {
      majority: Math.floor(count / 2) + 1,
      proxies,
      aim(index) {
        if (!(index in servers)) throw new RangeError(`there is no server ${index} of ${count}`);
        aimedAt = index;
      },
    },
    stop,
  };
}
