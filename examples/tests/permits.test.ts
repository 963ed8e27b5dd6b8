/** The semaphore and read-write lock examples pass their assertions, in this process and on a server. */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";

let server: RedisServer;
let printed: string[] = [];

beforeAll(async () => {
  server = await startRedis();
});
beforeEach(() => {
  vi.resetModules();
  printed = [];
  vi.spyOn(process.stdout, "write").mockImplementation((text) => printed.push(String(text)) > 0);
});
afterAll(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await server.stop();
});

describe.each(["in this process", "on a server"])("%s", (where) => {
  beforeEach(() => {
    vi.stubEnv("REDIS_URL", where === "on a server" ? `redis://127.0.0.1:${server.port}` : undefined);
  });

  test("every page comes from one build although the cache is rebuilt concurrently", async () => {
    await import("../cache-rebuild/cache-rebuild.js");
    expect(printed.join("")).toBe("cache: 400 pages read, each of one build, while it was rebuilt 5 times\n");
  });

  test("the service never gets more work than its limit", async () => {
    await import("../bounded-downstream/bounded-downstream.js");
    expect(printed.join("")).toMatch(/^downstream: 120 jobs, [1-9]\d* refused without the semaphore, 0 with it$/m);
  });

  test("all ids are unique, and workers that left or died are replaced", async () => {
    await import("../worker-slots/worker-slots.js");
    expect(printed.join("")).toBe(
      "workers: 3500 ids, 3500 different; worker 2 succeeds one that left, worker 1 one that died\n",
    );
  });
});
