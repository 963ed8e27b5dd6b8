/**
 * Tests deployments that are too broken to serve requests. The doctor examines them anyway, and the other verbs suggest
 * the doctor.
 */
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
