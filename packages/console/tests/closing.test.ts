import { describe, expect, it } from "vitest";
import { sleep } from "../../holdfast/src/testing/delays.js";
import { createConsole } from "../src/create-console.js";
import { readEvents } from "./event-reader.js";
import { redisScene, serveConsole, settings, startConsole, TOKEN } from "./scene.js";

const redis = redisScene();
const headers = { authorization: `Bearer ${TOKEN}` };

/** Timers and sockets that keep this process alive, by kind. */
function kept(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

describe("close()", () => {
  it("ends every stream with an end event, and later requests get 503", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const streams = await Promise.all([1, 2, 3].map(() => readEvents(site.port, "/api/events?topics=locks", headers)));
    await Promise.all(streams.map((stream) => stream.next("state", ({ locks }) => locks !== null)));
    await site.handler.close();
    for (const stream of streams) {
      await stream.next("end");
      await stream.ended;
    }
    const { status, json } = await site.get("api/clients");
    expect([status, json.code]).toEqual([503, "closed"]);
    await site.handler.close();
  });

  it("leaves no timer, connection or listener behind, and does not close the Holdfast", async () => {
    const listeners = (): number =>
      ["SIGINT", "SIGTERM", "exit", "warning"].reduce((sum, name) => sum + process.listenerCount(name), 0);
    const before = { timers: kept().Timeout ?? 0, listeners: listeners() };
    for (let round = 0; round < 5; round += 1) {
      const site = await startConsole({ holdfast: redis.holdfast });
      const streams = await Promise.all(
        [1, 2].map(() => readEvents(site.port, "/api/events?topics=locks,clients,redis", headers)),
      );
      await Promise.all(streams.map((stream) => stream.next("state", ({ locks }) => locks !== null)));
      streams[0]?.close();
      await site.close();
    }
    await sleep(50);
    expect(kept().Timeout ?? 0).toBeLessThanOrEqual(before.timers);
    expect(listeners()).toBe(before.listeners);
    await (await redis.holdfast.mutex("still-open").acquire()).release();
    expect(await asked()).toBe(await after(400, asked));
  });

  it("may be called before the first request, and twice", async () => {
    const handler = createConsole({ ...settings([]), holdfast: redis.holdfast, token: TOKEN });
    await handler.close();
    await handler.close();
    const site = await serveConsole(handler);
    expect((await site.get("api/locks")).status).toBe(503);
  });

  it("refuses new streams", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    await site.handler.close();
    expect((await site.get("api/events?topics=locks")).status).toBe(503);
  });
});

/** How many SCAN pages the server was asked for. */
async function asked(): Promise<number> {
  return (await redis.server.commandStats()).scan ?? 0;
}

async function after<Result>(ms: number, work: () => Promise<Result>): Promise<Result> {
  await sleep(ms);
  return work();
}
