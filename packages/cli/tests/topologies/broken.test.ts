/**
 * Tests deployments that are too broken to serve requests. The doctor examines them anyway, and the other verbs suggest
 * the doctor.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { until } from "../../../holdfast/src/testing/delays.js";
import { holdfast } from "../support/command.js";

let node: RedisServer;
let other: RedisServer;

beforeAll(async () => {
  [node, other] = await Promise.all([
    // The cluster bus uses the port number plus 10 000.
    startRedis({ belowPort: 16_000, args: ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"] }),
    startRedis(),
  ]);
});
afterAll(() => Promise.all([node, other].map((server) => server?.stop())));

const url = (port: number): string => `redis://127.0.0.1:${port}`;

test("doctor finds a missing cluster slot critical, and other verbs exit with 69 and suggest the doctor", async () => {
  await node.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  const state = async (): Promise<string> => String(await node.command("CLUSTER", "INFO"));
  await until(async () => (await state()).includes("cluster_state:ok"), "a whole cluster");
  await node.command("CLUSTER", "DELSLOTS", "16000");
  await until(async () => (await state()).includes("cluster_state:fail"), "a broken cluster");
  const where = ["--cluster", "-r", url(node.port)];
  const examined = await holdfast(["doctor", ...where, "--only", "cluster"], {});
  expect([examined.code, examined.stdout]).toEqual([1, expect.stringContaining("1 slot without a server")]);
  const refused = await holdfast(["ls", ...where, "--connect-timeout", "3s"], {});
  expect([refused.code, refused.stderr]).toEqual([69, expect.stringContaining("holdfast doctor --cluster")]);
  // The suggestion does not depend on whether some node could not be reached.
  const partly = await holdfast(["ls", ...where, "-r", url(1), "--connect-timeout", "3s"], {});
  expect([partly.code, partly.stderr]).toEqual([69, expect.stringContaining("holdfast doctor --cluster")]);
});

test("of several independent servers, the one that refuses the user is named", async () => {
  const closed = await startRedis();
  try {
    await closed.command("CONFIG", "SET", "requirepass", "secret");
    const urls = [url(other.port), `redis://:wrong@127.0.0.1:${closed.port}`, url(1)];
    const where = ["--redlock", ...urls.flatMap((each) => ["-r", each])];
    const { code, stderr } = await holdfast(["ls", ...where, "--connect-timeout", "20s"], {});
    expect([code, stderr]).toEqual([77, expect.stringContaining("refused the user: WRONGPASS")]);
    expect(stderr).toContain(`@127.0.0.1:${closed.port} refused`);
    expect(stderr).not.toContain(String(other.port));
  } finally {
    await closed.stop();
  }
});

test("other verbs name each independent server that is down, and doctor examines those that are up", async () => {
  const away = [1, 2].map((port) => url(port));
  const where = ["--redlock", ...[url(other.port), ...away].flatMap((each) => ["-r", each])];
  const refused = await holdfast(["ls", ...where, "--connect-timeout", "3s"], {});
  expect(refused.code).toBe(69);
  expect(refused.stderr).toMatch(
    /^holdfast: only 1 of 3 servers could be reached within 3s: .*:1: .*ECONNREFUSED.*:2: /,
  );
  const examined = await holdfast(["doctor", ...where, "--only", "memory", "--connect-timeout", "5s"], {});
  expect([examined.code, examined.stdout]).toEqual([expect.any(Number), expect.stringContaining(`${other.port}`)]);
  expect(examined.code).not.toBe(69);
});

test("a server that is loading its data is reported as such, and doctor examines it", async () => {
  const loading = await startRedis({ args: ["--enable-debug-command", "yes"] });
  try {
    const fill = "for n = 1, 2000 do redis.call('SET', 'key:' .. n, string.rep('x', 4096)) end";
    await loading.command("EVAL", fill, 0);
    // The server handles clients after each key, and loads for three minutes.
    const slow = ["key-load-delay", 100_000, "loading-process-events-interval-bytes", 1_024];
    await loading.command("CONFIG", "SET", ...slow);
    loading.command("DEBUG", "RELOAD").catch(() => {});
    // The connection that has sent DEBUG gets no other reply before the end.
    const asking = new Redis(loading.url, { enableReadyCheck: false });
    const reply = (): Promise<string> => asking.get("key:1").then(String, String);
    await until(async () => (await reply()).includes("LOADING"), "the server to load its data");
    asking.disconnect();
    const where = ["-r", url(loading.port), "--connect-timeout", "4s", "--command-timeout", "20s"];
    const refused = await holdfast(["ls", ...where], {});
    expect([refused.code, refused.stderr]).toEqual([69, expect.stringContaining("is still loading its data")]);
    const examined = await holdfast(["doctor", ...where, "--only", "role"], {});
    expect([examined.stderr, examined.stdout]).toEqual([
      expect.any(String),
      expect.stringContaining("it is still reading its data from disk"),
    ]);
  } finally {
    await loading.stop();
  }
});
