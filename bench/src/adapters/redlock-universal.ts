import type { Adapter } from "./adapter.js";
import { newIoredis } from "./client.js";

/** redlock-universal's lock on one server in the mode that it calls fastest; polling as often as the others. */
export const redlockUniversal: Adapter = {
  name: "redlock-universal",
  role: "peer",
  package: "redlock-universal",
  client: "ioredis",
  settings: 'performance "lean", retryAttempts 1e9, retryDelay 10; no renewal outside of using()',
  async open(connection) {
    const { createLock, IoredisAdapter } = await import("redlock-universal");
    const client = await newIoredis(connection);
    const adapter = new IoredisAdapter(client);
    return {
      async acquire(name) {
        const lock = createLock({
          adapter,
          key: name,
          ttl: connection.leaseMs,
          performance: "lean",
          retryAttempts: 1e9,
          retryDelay: 10,
        });
        const handle = await lock.acquire();
        return {
          async release() {
            if (!(await lock.release(handle))) throw new Error("redlock-universal: it was not held any more");
          },
        };
      },
      async close() {
        await client.quit();
      },
    };
  },
};
