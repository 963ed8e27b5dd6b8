import type { Adapter } from "./adapter.js";

/** node-redisson, which makes its own ioredis clients. */
export const nodeRedisson: Adapter = {
  name: "node-redisson",
  role: "peer",
  package: "node-redisson",
  client: "ioredis",
  settings: "lockWatchdogTimeout is the lease; pub/sub notification, renewal by its watchdog",
  async open({ port, autoPipelining, leaseMs }) {
    const { Redisson } = await import("node-redisson");
    const redisson = new Redisson({
      redis: { options: { host: "127.0.0.1", port, enableAutoPipelining: autoPipelining } },
      lockWatchdogTimeout: BigInt(leaseMs),
    });
    return {
      async acquire(name) {
        const lock = redisson.getLock(name);
        await lock.lock();
        return { release: () => lock.unlock() };
      },
      close: () => redisson.quit(),
    };
  },
};
