import type { Adapter } from "./adapter.js";
import { newNodeRedis } from "./client.js";

/** simple-redis-mutex, which notifies all waiters of every release. It supports only node-redis. */
export const simpleRedisMutex: Adapter = {
  name: "simple-redis-mutex",
  role: "peer",
  package: "simple-redis-mutex",
  client: "node-redis",
  settings: "defaults: pub/sub notification, and polling every 10 s; no renewal",
  async open(connection) {
    const { lock } = await import("simple-redis-mutex");
    const client = await newNodeRedis(connection);
    return {
      async acquire(name) {
        const release = await lock(client, name, { timeout: connection.leaseMs });
        return { release };
      },
      async close() {
        await client.close();
      },
    };
  },
};
