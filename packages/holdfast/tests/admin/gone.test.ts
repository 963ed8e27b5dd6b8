/** Holders and waiters whose client is gone while their lease runs: every list shows since when. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { clients, lookUp, surveyAll } from "../../src/admin/index.js";
import { createHoldfast } from "../../src/index.js";
import { until } from "../../src/testing/delays.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

test("a client that has not written its record for a minute is shown as gone while its leases run, and others are not", async () => {
  const [dying, living] = [new Redis(server.url), new Redis(server.url)];
  const gone = createHoldfast({ redis: dying, clientName: "gone" });
  const alive = createHoldfast({ redis: living, clientName: "alive" });
  const wait = new AbortController();
  try {
    const lease = await gone.mutex("report").acquire({ leaseMs: 1_800_000 });
    await alive.mutex("other").acquire({ leaseMs: 1_800_000 });
    gone
      .mutex("other")
      .acquire({ waitMs: 600_000, signal: wait.signal })
      .catch(() => {});
    await until(async () => (await alive.mutex("other").inspect()).waiterCount === 1, "it waits");
    const [clientId = ""] = lease.owner.split("/");
    // As after a kill -9: the client sends nothing more. The server's clock cannot be moved, so the record is made older.
    dying.disconnect();
    const sinceAtMs =
      Number(
        await server
          .command("TIME")
          .then(String)
          .then((text) => text.split(/[\s,]/)[0]),
      ) *
        1_000 -
      480_000;
    await server.command("HSET", `hf:client:${clientId}`, "seen", `${sinceAtMs}000`);

    const { locks } = await surveyAll(alive);
    const byName = new Map(locks.map((lock) => [lock.name, lock]));
    expect(byName.get("report")?.holders).toMatchObject([{ clientName: "gone", goneSinceAtMs: sinceAtMs }]);
    expect(byName.get("report")?.holders[0]?.leaseLeftMs).toBeGreaterThan(0);
    expect(byName.get("other")).toMatchObject({
      holders: [{ clientName: "alive", goneSinceAtMs: undefined }],
      waiters: [{ clientName: "gone", goneSinceAtMs: sinceAtMs }],
    });
    expect(await lookUp(alive, "report")).toMatchObject([{ holders: [{ goneSinceAtMs: sinceAtMs }] }]);
    const heardOf = new Map((await clients(alive)).map(({ clientName, isHeardOf }) => [clientName, isHeardOf]));
    expect(Object.fromEntries(heardOf)).toEqual({ alive: true, gone: false });
  } finally {
    wait.abort();
    await Promise.allSettled([gone.close(), alive.close()]);
    living.disconnect();
  }
});
