/** The example of a lock on several servers passes its assertions, in this process and on five servers. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";

let servers: RedisServer[];
let printed: string[] = [];

beforeAll(async () => {
  servers = await Promise.all(Array.from({ length: 5 }, () => startRedis()));
});
beforeEach(() => {
  vi.resetModules();
  printed = [];
  vi.spyOn(process.stdout, "write").mockImplementation((text) => printed.push(String(text)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

test.each(["in this process", "on five servers"])(
  "the ledger has no gap and no entry of a late writer: %s",
  async (where) => {
    const urls = servers.map(({ port }) => `redis://127.0.0.1:${port}`).join(" ");
    vi.stubEnv("REDIS_URLS", where === "on five servers" ? urls : undefined);
    await import("../ledger/ledger.js");
    expect(printed.join("")).toBe("ledger: 30 entries in a row, with 3 of 5 servers left\n");
  },
);
