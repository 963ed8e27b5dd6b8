/** The ioredis clients of Holdfast in the fault runs, set up as a user would. */
import { Cluster, Redis } from "ioredis";
import type { Reach } from "../stage.js";

/** How soon a client that lost its connection tries again, in ms. */
const RECONNECT_MS = 20;
const RECONNECT_MOST_MS = 200;
/**
 * A cluster client learns of moved slots from redirections only and does not refresh periodically. Its refresh timer
 * outlives a client that is closed during a refresh, and a client on one side of a split would learn of the other
 * side.
 */
const NO_REFRESH = 0;

/** A client, or one for each independent server. */
export interface Clients {
  readonly all: readonly (Redis | Cluster)[];
  disconnect(): void;
}

/** Creates the clients. They connect by themselves. */
export function clientsFor(port: number, reach: Reach): Clients {
  const all = made(port, reach);
  // An error that matters also rejects the call that it concerns.
  for (const client of all) client.on("error", () => {});
  return {
    all,
    disconnect() {
      for (const client of all) client.disconnect();
    },
  };
}

function made(port: number, reach: Reach): (Redis | Cluster)[] {
  const host = "127.0.0.1";
  const retry = (times: number): number => Math.min(times * RECONNECT_MS, RECONNECT_MOST_MS);
  const once = (at: number): Redis => new Redis({ port: at, host, retryStrategy: retry });
  switch (reach.by) {
    case "port":
      return [once(port)];
    case "quorum":
      return reach.ports.map(once);
    case "sentinel": {
      return [
        new Redis({
          name: reach.name,
          sentinels: reach.sentinels.map((at) => ({ host, port: at })),
          natMap: natMapOf(reach.lines),
          sentinelRetryStrategy: retry,
          retryStrategy: retry,
        }),
      ];
    }
    case "cluster":
      return [
        new Cluster(
          Object.values(reach.lines).map((at) => ({ host, port: at })),
          { natMap: natMapOf(reach.lines), clusterRetryStrategy: retry, slotsRefreshInterval: NO_REFRESH },
        ),
      ];
  }
}

function natMapOf(lines: Readonly<Record<string, number>>): Record<string, { host: string; port: number }> {
  return Object.fromEntries(Object.entries(lines).map(([at, port]) => [at, { host: "127.0.0.1", port }]));
}
