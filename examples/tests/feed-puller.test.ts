/** The scheduled job example passes its assertions on a server, with killed processes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

test("one instance pulls the feed at each tick, even if instances are killed", { timeout: 120_000 }, async () => {
  const script = fileURLToPath(new URL("../dist/feed-puller/feed-puller.js", import.meta.url));
  const child = spawn(process.execPath, [script], { env: { ...process.env, REDIS_URL: server.url } });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code] = await once(child, "close");
  expect(code, output).toBe(0);
  expect(output).toMatch(/^feed-puller: \d+ items, each once; 2 pullers killed, and no tick was pulled twice$/m);
});
