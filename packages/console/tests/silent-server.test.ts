/** Lists on several independent servers, one of which does not reply. */
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { readEvents } from "./event-reader.js";
import { startConsole, TOKEN } from "./scene.js";

const GONE = "ReH8GUZ6AOmR69do";

/** Runs a test with a Holdfast on three servers. The test may stop the first server. */
async function onThreeServers(test: (holdfast: Holdfast, servers: readonly RedisServer[]) => Promise<void>) {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const connections = servers.map(({ port }) => {
    const redis = new Redis({ port, maxRetriesPerRequest: 1 });
    redis.on("error", () => {});
    return redis;
  });
  const holdfast = createHoldfast({ redlock: connections });
  try {
    await test(holdfast, servers);
  } finally {
    await holdfast.close();
    for (const redis of connections) redis.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
  }
}

it("every list says how many servers did not reply", async () => {
  await onThreeServers(async (holdfast, servers) => {
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
  });
});

it("releasing the locks of a gone client says which locks it may still hold", async () => {
  await onThreeServers(async (holdfast, servers) => {
    const hold = async (name: string, on: readonly RedisServer[]): Promise<void> => {
      for (const server of on) {
        await server.command("SET", `hf:redlock:{${name}}`, `${GONE}/1/600000/1`, "PX", "600000");
        await server.command("SET", `hf:redlock:{${name}}:fence`, "7");
      }
    };
    const longAgoUs = (Date.now() - 90_000) * 1_000;
    for (const server of servers)
      await server.command(
        "HSET",
        `hf:client:${GONE}`,
        "host",
        "app-1",
        "pid",
        "1",
        "seen",
        longAgoUs,
        "protocol",
        "1",
      );
    await hold("sure", servers);
    // With the first server down, one of two servers holds it, and the third may hold it as well.
    await hold("unsure", servers.slice(0, 2));
    const page = await (await startConsole({ holdfast, allow: ["release"] })).signIn("ana");
    await servers[0]?.stop();
    const { json } = await page.post("api/actions/release-client", { clientId: GONE, reason: "host is gone" });
    expect(json.message).toBe(
      `Released 1 lock of client ${GONE}, which is gone. 1 server did not reply, so it may hold more. ` +
        "Too few servers replied to tell whether these locks are held: unsure.",
    );
    expect(await servers[1]?.command("EXISTS", "hf:redlock:{sure}", "hf:redlock:{unsure}")).toBe(1);
  });
});
