import type { Adapter } from "./adapter.js";
import { newIoredis } from "./client.js";

/** redlock 5 on one server, by `acquire` and `release`; polling as often as the others, in place of every 200 ms. */
export const redlock: Adapter = {
  name: "redlock",
  role: "peer",
  package: "redlock",
  client: "ioredis",
  settings: "one server, retryCount -1, retryDelay 10, retryJitter 5; no renewal outside of using()",
  async open(connection) {
    const { default: Redlock } = await import("redlock");
    const client = await newIoredis(connection);
    const locks = new Redlock([client], { retryCount: -1, retryDelay: 10, retryJitter: 5 });
    return {
      acquire: (name) => locks.acquire([name], connection.leaseMs),
      async close() {
        await client.quit();
      },
    };
  },
};
