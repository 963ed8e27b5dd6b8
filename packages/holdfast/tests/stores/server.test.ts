/** The server address that a store reports for telemetry. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { storeFor } from "../../src/stores/detect.js";
import { ROWS } from "./rows.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

test.each(ROWS)("$name: a store reports the address of its server if the client exposes it", async (row) => {
  const client = await row.connect(server.port);
  const store = storeFor(client);
  try {
    const said = store.server?.();
    if (/ioredis|iovalkey|node-redis/.test(row.name) && !/pool/.test(row.name)) {
      expect(said?.port).toBe(server.port);
      expect(["127.0.0.1", "localhost"]).toContain(said?.host);
    } else expect(said).toBeUndefined();
  } finally {
    await store.close();
    await row.disconnect(client);
  }
});
