/** Any number of Holdfasts on one client share one set of listeners. */
import { EventEmitter } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../src/index.js";
import { storeFor } from "../../src/stores/detect.js";
import { until } from "../../src/testing/delays.js";
import { ROWS } from "./rows.js";

const HOLDFASTS = 3 * EventEmitter.defaultMaxListeners;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

test.each(ROWS.filter(({ hasEvents }) => hasEvents))("$name: all Holdfasts share one set of listeners", async (row) => {
  const warnings: Error[] = [];
  const collect = (warning: Error): void => void warnings.push(warning);
  process.on("warning", collect);
  const client = await row.connect(server.port);
  try {
    const before = row.listeners(client);
    const holdfasts = Array.from({ length: HOLDFASTS }, () => createHoldfast({ redis: client }));
    const grown = row.listeners(client);
    for (const [event, count] of Object.entries(before)) expect(grown[event]).toBeLessThanOrEqual(count + 1);
    await Promise.all(holdfasts.map((holdfast) => holdfast.close()));
    expect(row.listeners(client)).toEqual(before);
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  } finally {
    process.off("warning", collect);
    await row.disconnect(client);
  }
});

test.each(ROWS.filter(({ hasEvents }) => hasEvents))(
  "$name: each open store on one client is notified once of a reconnect",
  async (row) => {
    const client = await row.connect(server.port);
    try {
      const told = [0, 0, 0];
      const stores = told.map(() => storeFor(client));
      stores.forEach((store, i) => {
        store.onReconnect((connection) => {
          if (connection === "commands") told[i] = (told[i] ?? 0) + 1;
        });
      });
      await row.ping(client);
      await stores[0]?.close();
      await server.command("CLIENT", "KILL", "TYPE", "normal");
      await until(async () => told[1] === 1 && told[2] === 1, "both are told");
      expect(told).toEqual([0, 1, 1]);
      await Promise.all(stores.map((store) => store.close()));
    } finally {
      await row.disconnect(client);
    }
  },
);
