import type { Adapter } from "./adapter.js";
import { newIoredis, newIoredisOn } from "./client.js";

/** redis-semaphore's Mutex and RedlockMutex, with their default renewal. */
export const redisSemaphore: Adapter = {
  name: "redis-semaphore",
  role: "peer",
  package: "redis-semaphore",
  client: "ioredis",
  settings:
    "Mutex, on several servers RedlockMutex, acquireTimeout Infinity; retryInterval 10 and renewal are its defaults",
  async open(connection) {
    const { Mutex } = await import("redis-semaphore");
    const client = await newIoredis(connection);
    return {
      async acquire(name) {
        const mutex = new Mutex(client, name, optionsOf(connection));
        await mutex.acquire();
        return mutex;
      },
      async close() {
        await client.quit();
      },
    };
  },
  async openQuorum(connection, ports) {
    const { RedlockMutex } = await import("redis-semaphore");
    const clients = await newIoredisOn(connection, ports);
    return {
      async acquire(name) {
        const mutex = new RedlockMutex(clients, name, optionsOf(connection));
        await mutex.acquire();
        return mutex;
      },
      async close() {
        await Promise.all(clients.map((client) => client.quit()));
      },
    };
  },
};

function optionsOf({ leaseMs }: { readonly leaseMs: number }): {
  readonly lockTimeout: number;
  readonly acquireTimeout: number;
} {
  return { lockTimeout: leaseMs, acquireTimeout: Number.POSITIVE_INFINITY };
}
