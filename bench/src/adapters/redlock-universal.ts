import type { Lock } from "redlock-universal";
import type { Adapter, Held } from "./adapter.js";
import { newIoredis, newIoredisOn } from "./client.js";

const POLLING = { retryAttempts: 1e9, retryDelay: 10 };

/** redlock-universal: on one server in the mode that it calls fastest, and on several. It polls as often as the others. */
export const redlockUniversal: Adapter = {
  name: "redlock-universal",
  role: "peer",
  package: "redlock-universal",
  client: "ioredis",
  settings:
    'performance "lean", on several servers createRedlock; retryAttempts 1e9, retryDelay 10; no renewal outside of using()',
  async open(connection) {
    const { createLock, IoredisAdapter } = await import("redlock-universal");
    const client = await newIoredis(connection);
    const adapter = new IoredisAdapter(client);
    return {
      acquire: (name) =>
        take(createLock({ adapter, key: name, ttl: connection.leaseMs, performance: "lean", ...POLLING })),
      async close() {
        await client.quit();
      },
    };
  },
  async openQuorum(connection, ports) {
    const { createRedlock, IoredisAdapter } = await import("redlock-universal");
    const clients = await newIoredisOn(connection, ports);
    const adapters = clients.map((client) => new IoredisAdapter(client));
    return {
      acquire: (name) => take(createRedlock({ adapters, key: name, ttl: connection.leaseMs, ...POLLING })),
      async close() {
        await Promise.all(clients.map((client) => client.quit()));
      },
    };
  },
};

async function take(lock: Lock): Promise<Held> {
  const handle = await lock.acquire();
  return {
    async release() {
      if (!(await lock.release(handle))) throw new Error("redlock-universal: the lock was no longer held");
    },
  };
}
