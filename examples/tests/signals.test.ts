/** The condition, latch, barrier and election examples pass their assertions, in this process and on a server. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

/** Runs a compiled example, as a user does. `npm test` builds it first. */
async function run(example: string, where: string): Promise<string> {
  const script = fileURLToPath(new URL(`../dist/${example}/${example}.js`, import.meta.url));
  const { REDIS_URL: _, ...inherited } = process.env;
  const env = where === "on a server" ? { ...inherited, REDIS_URL: server.url } : inherited;
  const child = spawn(process.execPath, [script], { env });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code] = await once(child, "close");
  expect(code, output).toBe(0);
  return output;
}

describe.each(["in this process", "on a server"])("%s", (where) => {
  test("every job is taken once, and the buffer never overflows", async () => {
    expect(await run("producer-consumer", where)).toMatch(
      /^producer-consumer: 60 jobs, each taken once, never more than [1-4] waiting\n$/,
    );
  });

  test("workers start together, stay in step, and stop together", async () => {
    expect(await run("start-gate", where)).toBe(
      "start-gate: 4 workers, 3 phases in step, and one broken in sight of all\n",
    );
  });

  test("a feed continues where its killed leaders stopped", async () => {
    expect(await run("leader-feed", where)).toMatch(
      /^leader-feed: 60 items, each once; puller [1-4] died after \d+, puller [1-4] died after \d+, and others continued\n$/,
    );
  });
});
