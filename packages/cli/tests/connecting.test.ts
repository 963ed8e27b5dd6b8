/** Tests that URLs which ask for something the servers cannot do are refused before anything else is done. */
import { leastPrivilege } from "holdfast/diagnosis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type RedisSentinel, startSentinel } from "../../../tests/support/redis-sentinel.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { commonFlags } from "../src/frame/flags.js";
import { serverUrls } from "../src/frame/server-url.js";
import { holdfast } from "./support/command.js";

// Starting a process can take very long on a busy machine, so use long timeouts. No test here measures time.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const PATIENT = ["--connect-timeout", "60s", "--command-timeout", "30s"];

describe("a database that does not exist", () => {
  let redis: RedisServer;
  let sentinel: RedisSentinel;
  beforeAll(async () => {
    [redis, sentinel] = await Promise.all([startRedis(), startSentinel({ replicas: 1, downAfterMs: 60_000 })]);
  });
  afterAll(async () => void (await Promise.all([redis?.stop(), sentinel?.stop()])));

  it("makes run exit with 64, and database 0 is not used instead", async () => {
    const { code, stderr } = await holdfast(["run", "a", "-r", `${redis.url}/99`, ...PATIENT, "--", "true"]);
    expect([code, stderr]).toEqual([64, `holdfast: database 99 does not exist on 127.0.0.1:${redis.port}\n`]);
    expect((await holdfast(["run", "a", "-r", `${redis.url}/9`, ...PATIENT, "--", "true"])).code).toBe(0);
    expect(await redis.command("SELECT", "0")).toBe("OK");
    expect(await redis.command("DBSIZE")).toBe(0);
  });

  it("is reported with the address of the primary behind Sentinel", async () => {
    const urls = sentinel.addresses.flatMap(({ host, port }) => ["-r", `redis://${host}:${port}/99`]);
    const { code, stderr } = await holdfast(["ls", "--sentinel", sentinel.name, ...urls, ...PATIENT]);
    const ports = sentinel.nodes.map(({ port }) => port);
    expect(code).toBe(64);
    const [, port] = /^holdfast: database 99 does not exist on 127\.0\.0\.1:(\d+)\n$/.exec(stderr) ?? [];
    expect(ports).toContain(Number(port));
  });
});

describe("--redlock", () => {
  const urlsOf = (redis: string[]): unknown => serverUrls("run", commonFlags({ redis, redlock: true }, {}));

  it.each([
    [["redis://a", "redis://b", "redis://A:6379"], "a:6379"],
    [["redis://a:1", "rediss://x:p@b:2/1", "redis://b:2/2"], "b:2"],
  ])("refuses a server that is listed twice: %j", (urls, twice) => {
    expect(() => urlsOf(urls)).toThrow(`--redlock needs independent servers; ${twice} is listed twice`);
  });

  it("accepts three ports of one host", () => {
    expect(urlsOf(["redis://a:1", "redis://a:2", "redis://a:3"])).toHaveLength(3);
  });
});

describe("a user without permission for INFO", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.stop());

  it("gets a warning from Holdfast, and none from the client library or Node", async () => {
    const rules = leastPrivilege("hf").server;
    await redis.command("ACL", "SETUSER", "blind", "on", ">secret", "resetchannels", ...rules, "-info");
    const { code, stderr } = await holdfast([
      "run",
      "a",
      "-r",
      `redis://blind:secret@127.0.0.1:${redis.port}`,
      ...PATIENT,
      "--",
      "true",
    ]);
    expect(code).toBe(0);
    expect(stderr).toContain("holdfast: Holdfast cannot see whether this server took over from another");
    expect(stderr).not.toMatch(/ready check|ioredis|\(node:|--trace-warnings/);
  });
});
