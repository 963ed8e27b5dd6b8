/** The reentrant mutex and multi-lock examples pass their assertions, in this process and on a server. */
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

  test("the report is in order although each of its parts acquires the lock", async () => {
    await import("../reentrant-report/report.js");
    expect(printed.join("")).toBe("report: 11 lines in order, 3 grants\n");
  });

  test("the transfers lose no money and never deadlock", async () => {
    await import("../transfer/transfer.js");
    expect(printed.join("")).toMatch(/^transfer: \d+ of 200 carried out, 4000 in all accounts$/m);
  });
});
