import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { until } from "../../holdfast/src/testing/delays.js";
import { consoleOn } from "../src/create-console.js";
import { troubleOf } from "../src/trouble.js";
import { readEvents } from "./event-reader.js";
import { type ConsoleScene, serveConsole, settings, startConsole, TOKEN } from "./scene.js";

const headers = { authorization: `Bearer ${TOKEN}` };
let server: RedisServer;
const lateServers: RedisServer[] = [];
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => Promise.all([server, ...lateServers].map((one) => one.stop())));

describe("without Redis", () => {
  it("a console starts, reports the error to every viewer, and works as soon as Redis is up", async () => {
    const { site, listen } = await consoleBeforeRedis();
    const page = await site.signIn();
    const { status, json, headers: answered } = await page.get("api/locks");
    expect(status).toBe(503);
    expect(answered["content-type"]).toContain("application/problem+json");
    expect(Number(answered["retry-after"])).toBeGreaterThan(0);
    expect(json).toMatchObject({ code: "redis-down", store: { state: "down", address: "redis://ana:***@db" } });
    expect(json.store.error).toContain("Nothing listens");
    expect(json.store.hint).toContain("Start Redis");
    expect(json.detail).toMatch(/^The console cannot use Redis at redis:\/\/ana:\*\*\*@db: Nothing listens/);
    // The Redis page works while Redis is down.
    const about = await page.get("api/redis");
    expect([about.status, about.json.store.state]).toEqual([200, "down"]);

    const stream = await readEvents(site.port, "/api/events?topics=locks", headers);
    const { data } = await stream.next("state", ({ store }) => store.state === "down");
    expect(data.locks).toBeNull();
    const later = await stream.next("state", ({ store }) => store.attempt > data.store.attempt);
    expect(later.data.store.sinceAtMs).toBe(data.store.sinceAtMs);
    expect(later.data.store.nextTryAtMs).toBeGreaterThan(data.store.nextTryAtMs);
    await listen();
    const { data: healed } = await stream.next("state", ({ locks }) => locks !== null);
    expect(healed.store.state).toBe("up");
    expect((await page.get("api/locks")).status).toBe(200);
    stream.close();
  });

  it("a running console reports the outage and the recovery in the same stream", async () => {
    const redis = new Redis({ port: server.port, retryStrategy: () => 50 });
    redis.on("error", () => {});
    const holdfast = createHoldfast({ redis, commandTimeoutMs: 500 });
    const site = await startConsole({ holdfast, address: "the database" });
    const stream = await readEvents(site.port, "/api/events?topics=locks", headers);
    await stream.next("state", ({ locks }) => locks !== null);
    await server.kill();
    const { data: down } = await stream.next("change", ({ store }) => store?.state === "down");
    expect(down.store.address).toBe("the database");
    expect((await site.get("api/clients")).status).toBe(503);
    await server.restart();
    await stream.next("change", ({ store }) => store?.state === "up");
    expect((await site.get("api/clients")).status).toBe(200);
    stream.close();
    await site.close();
    await holdfast.close();
    redis.disconnect();
  });

  it("a console whose commands only time out says why the connection is down", async () => {
    const redis = new Redis({
      port: server.port,
      retryStrategy: () => 50,
      maxRetriesPerRequest: null,
      commandTimeout: 500,
    });
    redis.on("error", () => {});
    const holdfast = createHoldfast({ redis });
    const site = await startConsole({ holdfast, servers: () => [redis] });
    expect((await site.get("api/locks")).status).toBe(200);
    const listeners = redis.listenerCount("ready");
    await server.kill();
    await until(async () => {
      const { json } = await site.get("api/locks");
      return json.store?.error?.includes("ECONNREFUSED");
    }, "it says that nothing listens");
    await server.restart();
    await until(async () => (await site.get("api/locks")).status === 200, "it answers again");
    expect((await site.get("api/redis")).json.store.state).toBe("up");
    await site.close();
    expect(redis.listenerCount("ready")).toBeLessThan(listeners);
    await holdfast.close();
    redis.disconnect();
  });

  it("an action without a reply is reported as unknown, not as refused", async () => {
    const redis = new Redis({ port: server.port, retryStrategy: () => 50 });
    redis.on("error", () => {});
    const holdfast = createHoldfast({ redis, commandTimeoutMs: 300 });
    const lease = await holdfast.mutex("stalled").acquire();
    const site = await startConsole({ holdfast, allow: ["pause"] });
    const page = await site.signIn();
    server.freeze();
    const body = { kind: "mutex", name: "stalled", reason: "stalls", untilAtMs: null };
    const { status, json } = await page.post("api/actions/pause", body);
    server.resume();
    expect([status, json.code]).toEqual([503, "redis-down"]);
    expect(json.detail).toContain("may have been done");
    expect(json.mayHaveRun).toBe(true);
    expect(site.audit.map(({ outcome }) => outcome)).toEqual(["unknown"]);
    await until(async () => (await site.get("api/locks")).status === 200, "it answers again");
    await lease.release();
    await site.close();
    await holdfast.close();
    redis.disconnect();
  });
});

describe("a request that Redis refuses", () => {
  it("fails alone: the console stays up for all other requests", async () => {
    const redis = new Redis({ port: server.port });
    const holdfast = createHoldfast({ redis });
    const site = await startConsole({ holdfast, allow: ["pause"] });
    const page = await site.signIn();
    expect((await page.get("api/locks")).status).toBe(200);
    await server.command("CONFIG", "SET", "maxmemory", "1");
    const body = { kind: "mutex", name: "refused", reason: "no memory", untilAtMs: null };
    const { status, json } = await page.post("api/actions/pause", body);
    expect([status, json.code, json.mayHaveRun]).toEqual([503, "refused", undefined]);
    expect(json.detail).toMatch(/^Redis is out of memory and refuses writes\. .*can still be renewed and released\.$/);
    expect((await page.get("api/redis")).json.store.state).toBe("up");
    await server.command("CONFIG", "SET", "maxmemory", "0");
    await site.close();
    await holdfast.close();
    redis.disconnect();
  });
});

describe("a connection error", () => {
  it("is described in plain words with a hint, and without a password", () => {
    const error = new Error("connect ECONNREFUSED 127.0.0.1:6379 for redis://ana:secret@db:6379");
    expect(troubleOf(error)).toMatchObject({
      error: expect.stringContaining("Nothing listens"),
      hint: expect.stringContaining("Start Redis"),
    });
    expect(JSON.stringify(troubleOf(error))).not.toContain("secret");
    expect(troubleOf(new Error("x", { cause: new Error("NOAUTH Authentication required.") })).error).toContain(
      "password",
    );
    expect(troubleOf(new Error("LOADING Redis is loading the dataset in memory")).error).toContain("loading");
    const given = "Reached the max retries per request limit (which is 1). Refer to maxRetriesPerRequest for details.";
    expect(troubleOf(new Error(given)).error, "what a client library says of itself").toBe("Redis does not reply.");
    const timeout = new Error("Command timed out");
    expect(troubleOf(timeout).error).toBe("Redis does not reply.");
    expect(troubleOf(timeout, new Error("connect ECONNREFUSED 127.0.0.1:6379")).error).toBe(
      "Nothing listens at that address. (connect ECONNREFUSED 127.0.0.1:6379)",
    );
    for (const text of ["no reply within 2000 ms", "no reply to TIME within 5000 ms", "the server did not reply"])
      expect(troubleOf(new Error(text)).error).toBe(`Redis does not reply. (${text})`);
    expect(troubleOf("odd").hint).not.toBe("");
  });
});

/** A console whose Redis port refuses connections until `listen` is called. */
async function consoleBeforeRedis(): Promise<{ site: ConsoleScene; listen: () => Promise<void> }> {
  const late = await startRedis();
  lateServers.push(late);
  await late.kill();
  const connect = async () => {
    const redis = new Redis({ port: late.port, lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 });
    let cause: unknown;
    redis.on("error", (error) => {
      cause = error;
    });
    await redis.connect().catch((error: unknown) => {
      redis.disconnect();
      // The same error as from the CLI's own connection code.
      throw Object.assign(new Error("no Redis", { cause: cause ?? error }), { code: 69 });
    });
    const holdfast = createHoldfast({ redis });
    const close = async (): Promise<void> => {
      await holdfast.close();
      redis.disconnect();
    };
    return { holdfast, prefix: "hf", topology: "single" as const, servers: () => [redis], close };
  };
  const handler = consoleOn({ address: "redis://ana:***@db", connect }, { ...settings([]), token: TOKEN });
  return { site: await serveConsole(handler), listen: () => late.restart() };
}
