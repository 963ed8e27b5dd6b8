/** Lists on several independent servers, one of which does not reply. */
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { startRedis } from "../../../tests/support/redis-server.js";
import { readEvents } from "./event-reader.js";
import { startConsole, TOKEN } from "./scene.js";

it("every list says how many servers did not reply", async () => {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const connections = servers.map(({ port }) => {
    const redis = new Redis({ port, maxRetriesPerRequest: 1 });
    redis.on("error", () => {});
    return redis;
  });
  const holdfast = createHoldfast({ redlock: connections });
  try {
    const { get, port } = await startConsole({ holdfast });
    const topics = "topics=locks,clients,semaphores,elections";
    const stream = await readEvents(port, `/api/events?${topics}`, { authorization: `Bearer ${TOKEN}` });
    const lists = ["api/locks?q=order", "api/clients", "api/semaphores", "api/elections"];
    const missing = async (): Promise<unknown> =>
      Promise.all(lists.map(async (list) => (await get(list)).json.unreachable));
    expect(await missing()).toEqual([0, 0, 0, 0]);
    await stream.next("state", ({ locks }) => locks?.unreachable === 0);
    await servers[0]?.stop();
    expect(await missing()).toEqual([1, 1, 1, 1]);
    const seen = new Set<string>();
    await stream.next("change", (change) => {
      for (const topic of ["locks", "clients", "semaphores", "elections"])
        if (change[topic]?.unreachable === 1) seen.add(topic);
      return seen.size === 4;
    });
    stream.close();
  } finally {
    await holdfast.close();
    for (const redis of connections) redis.disconnect();
    await Promise.all(servers.slice(1).map((server) => server.stop()));
  }
});
