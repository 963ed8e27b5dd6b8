/** Lists on several independent servers, one of which does not reply. */
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { startRedis } from "../../../tests/support/redis-server.js";
import { startConsole } from "./scene.js";

it("a search for locks says how many servers did not reply", async () => {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const connections = servers.map(({ port }) => {
    const redis = new Redis({ port, maxRetriesPerRequest: 1 });
    redis.on("error", () => {});
    return redis;
  });
  const holdfast = createHoldfast({ redlock: connections });
  try {
    const { get } = await startConsole({ holdfast });
    expect((await get("api/locks?q=order")).json).toMatchObject({ rows: [], unreachable: 0 });
    await servers[0]?.stop();
    expect((await get("api/locks?q=order")).json).toMatchObject({ rows: [], unreachable: 1 });
  } finally {
    await holdfast.close();
    for (const redis of connections) redis.disconnect();
    await Promise.all(servers.slice(1).map((server) => server.stop()));
  }
});
