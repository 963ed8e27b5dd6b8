import type { Adapter } from "./adapter.js";
import { newIoredis } from "./client.js";

/** verrou with its Redis store. It polls as often as the others instead of every 250 ms. */
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
        // Null means no limit. If the timeout is absent, verrou gives up after 30 s.
        if (!(await lock.acquire({ retry: { timeout: null, delay: 10 } }))) throw new Error("verrou gave up");
        return lock;
      },
      async close() {
        await client.quit();
      },
    };
  },
};
