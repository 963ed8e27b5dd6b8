/** Real servers check the token: PostgreSQL and Redis. readme.test.ts has more examples on Redis. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { type PostgresServer, postgresFolder, startPostgres } from "../../tests/support/postgres-server.js";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";

const servers: (PostgresServer | RedisServer)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

// `npm test` reports a missing PostgreSQL. In CI it installs PostgreSQL, and without it the test fails.
const isMissing = postgresFolder() === undefined && process.env.CI !== "true";

test.skipIf(isMissing)(
  "PostgreSQL refuses what a holder writes after its time",
  async () => {
    const [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
    servers.push(redis, postgres);
    vi.stubEnv("REDIS_URL", redis.url);
    vi.stubEnv("DATABASE_URL", postgres.url);
    const printed: string[] = [];
    vi.spyOn(process.stdout, "write").mockImplementation((text) => printed.push(String(text)) > 0);
    await import("../fencing/postgres.js");
    expect(printed.join("")).toBe("postgres: three writes that came too late were refused, and none was lost\n");
  },
  120_000,
);

test("a holder that is paused between check and write corrupts a value without the token, and never with it", async () => {
  const redis = await startRedis();
  servers.push(redis);
  // Runs the compiled example, as a user does. `npm test` builds it first.
  const script = fileURLToPath(new URL("../dist/fencing/paused-holder.js", import.meta.url));
  const child = spawn(process.execPath, [script], { env: { ...process.env, REDIS_URL: redis.url } });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code] = await once(child, "close");
  expect(output).toBe("paused-holder: 3 of 3 values overwritten without the token, 0 with it\n");
  expect(code).toBe(0);
}, 120_000);
