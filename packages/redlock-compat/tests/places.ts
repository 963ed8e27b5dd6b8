/** The topologies of the tests: one server, three servers, a cluster. */
import { randomUUID } from "node:crypto";
import { Cluster, Redis } from "ioredis";
import { startCluster } from "../../../tests/support/redis-cluster.js";
import { startRedis } from "../../../tests/support/redis-server.js";

export interface Place {
  readonly clients: readonly (Redis | Cluster)[];
  stop(): Promise<void>;
}

async function servers(count: number): Promise<Place> {
  const started = await Promise.all(Array.from({ length: count }, () => startRedis()));
  const clients = started.map(({ port }) => new Redis({ port }));
  return {
    clients,
    async stop() {
      for (const client of clients) client.disconnect();
      await Promise.all(started.map((server) => server.stop()));
    },
  };
}

export const PLACES: readonly (readonly [string, () => Promise<Place>])[] = [
  ["one server", () => servers(1)],
  ["three servers", () => servers(3)],
  [
    "a cluster",
    async () => {
      const cluster = await startCluster();
      const client = new Cluster(cluster.ports.map((port) => ({ host: "127.0.0.1", port })));
      return {
        clients: [client],
        async stop() {
          client.disconnect();
          await cluster.stop();
        },
      };
    },
  ],
];

/** Resource names that no other test uses, all in one cluster slot. */
export function names(count: number): string[] {
  const id = randomUUID();
  return Array.from({ length: count }, (_, at) => `{${id}}:${at}`);
}
