import type { Adapter, Connection, Contestant } from "./adapter.js";
import { newIoredisOn } from "./client.js";

/** The maintained fork of redlock, with `acquire` and `release`. It polls as often as the others instead of every 200 ms. */
export const sesamecareRedlock: Adapter = {
  name: "@sesamecare-oss/redlock",
  role: "peer",
  package: "@sesamecare-oss/redlock",
  client: "ioredis",
  settings:
    "one server unless the row has several, retryCount -1, retryDelay 10, retryJitter 5; no renewal outside of using()",
  open: (connection) => openQuorum(connection, [connection.port]),
  openQuorum,
};

async function openQuorum(connection: Connection, ports: readonly number[]): Promise<Contestant> {
  const { Redlock } = await import("@sesamecare-oss/redlock");
  const clients = await newIoredisOn(connection, ports);
  const locks = new Redlock(clients, { retryCount: -1, retryDelay: 10, retryJitter: 5 });
  return {
    acquire: (name) => locks.acquire([name], connection.leaseMs),
    async close() {
      await Promise.all(clients.map((client) => client.quit()));
    },
  };
}
