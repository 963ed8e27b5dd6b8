import type { Adapter } from "./adapter.js";
import { newIoredis } from "./client.js";

/** redis-semaphore's Mutex, renewed as by default. */
export const redisSemaphore: Adapter = {
  name: "redis-semaphore",
  role: "peer",
  package: "redis-semaphore",
  client: "ioredis",
  settings: "Mutex, acquireTimeout Infinity; retryInterval 10 and renewal are its defaults",
  async open(connection) {
    const { Mutex } = await import("redis-semaphore");
    const client = await newIoredis(connection);
    return {
      async acquire(name) {
        const mutex = new Mutex(client, name, {
          lockTimeout: connection.leaseMs,
          acquireTimeout: Number.POSITIVE_INFINITY,
        });
        await mutex.acquire();
        return mutex;
      },
      async close() {
        await client.quit();
      },
    };
  },
};
