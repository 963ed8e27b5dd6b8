/** The sale: oversold without a lock, but not with a lock or with the guarded counter, even if buyers are killed. */
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

/** Runs a compiled program, as a user does. `npm test` builds it first. */
async function run(program: string, ...args: string[]): Promise<string> {
  const script = fileURLToPath(new URL(`../dist/stock/${program}.js`, import.meta.url));
  const child = spawn(process.execPath, [script, ...args], { env: { ...process.env, REDIS_URL: server.url } });
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

test("a hundred of a hundred items are sold to a thousand buyers in four processes", async () => {
  const lines = (await run("stock")).trimEnd().split("\n");
  expect(lines[0]).toBe("stock: 100 items, 1000 buyers in 4 processes");
  const [, oversold] = /^stock: unlocked (\d+) sold, \d+ left$/.exec(lines[1] ?? "") ?? [];
  expect(Number(oversold)).toBeGreaterThan(100);
  expect(lines.slice(2)).toEqual([
    "stock: locked   100 sold, 0 left",
    "stock: guarded  100 sold, 0 left",
    "stock: guarded  100 sold, 0 left, with 4 processes killed on the way",
  ]);
  // The example deletes its keys. Only keys that expire are left.
  for (const key of (await server.command("KEYS", "*")) as string[]) {
    expect(Number(await server.command("PTTL", key)), key).toBeGreaterThan(0);
  }
}, 180_000);

test("the speed of both can be measured and compared", async () => {
  expect(await run("measure", "1")).toMatch(
    /^1000 buyers in 4 processes, medians of 1 rounds: locked \d+ ms, guarded \d+ ms, [\d.]+ times as fast \([\d.]+ to [\d.]+\)\n$/,
  );
}, 180_000);
