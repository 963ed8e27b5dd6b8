import type { Adapter } from "./adapter.js";
import { newIoredis } from "./client.js";

/** verrou with its Redis store; polling as often as the others, in place of every 250 ms. */
export const verrou: Adapter = {
  name: "verrou",
  role: "peer",
  package: "@verrou/core",
  client: "ioredis",
  settings: "Redis store, retry delay 10, no time limit; no renewal",
  async open(connection) {
    const { Verrou } = await import("@verrou/core");
    const { redisStore } = await import("@verrou/core/drivers/redis");
    const client = await newIoredis(connection);
    const driver = redisStore({ connection: client });
    const locks = new Verrou({ default: "redis", stores: { redis: { driver } } });
    return {
      async acquire(name) {
        const lock = locks.createLock(name, connection.leaseMs);
        // Null is its word for no limit; without any it gives up after 30 s.
        if (!(await lock.acquire({ retry: { timeout: null, delay: 10 } }))) throw new Error("verrou gave up");
        return lock;
      },
      async close() {
        await client.quit();
      },
    };
  },
};
