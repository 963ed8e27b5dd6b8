/** Tests the output and the exit codes of `holdfast doctor`. */
import { PassThrough } from "node:stream";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { dispatch } from "../../src/frame/dispatch.js";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let healthy: RedisServer;
let evicting: RedisServer;

beforeAll(async () => {
  [healthy, evicting] = await Promise.all([
    startRedis(),
    startRedis({
      args: ["--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"],
    }),
  ]);
  // Set the password only now, because the start of the server is awaited without a password.
  await evicting.command("CONFIG", "SET", "requirepass", "sesame-street");
});
afterAll(() => Promise.all([healthy?.stop(), evicting?.stop()]));

interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function holdfast(...words: readonly string[]): Promise<Said> {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  let [out, err] = ["", ""];
  stdout.on("data", (chunk) => (out += String(chunk)));
  stderr.on("data", (chunk) => (err += String(chunk)));
  const code = await dispatch(words, { stdin, stdout, stderr, env: {} }, () => "0");
  await new Promise((resolve) => setImmediate(resolve));
  return { code, out, err };
}

test("doctor exits with 0 without a critical finding, and with 1 for a warning with --strict", async () => {
  const url = `redis://127.0.0.1:${healthy.port}`;
  const lenient = await holdfast("doctor", "-r", url);
  expect(lenient.code).toBe(0);
  expect(lenient.out).toMatch(
    /^WARNING\n {2}persistence {2}127\.0\.0\.1:\d+: nothing is written to disk\n {6}risk .*\n {6}fix {3}/,
  );
  expect(lenient.out).not.toContain("OK\n");
  // A slow machine may cause another warning.
  const warnings = /\n {2}pubsub .* arrived after .*; 1 receiver counted\n/.test(lenient.out)
    ? "2 warnings"
    : "1 warning";
  expect(lenient.out).toMatch(/\n27 checks of 1 server at redis:\/\/127\.0\.0\.1:\d+ in [\d.]+ s: /);
  expect(lenient.out).toContain(` s: 0 critical, ${warnings}, `);
  expect((await holdfast("doctor", "-r", url, "--strict", "-q")).code).toBe(1);
  expect((await holdfast("doctor", "-r", url, "--strict", "--only", "role,acl", "-v")).out).toMatch(
    /^OK\n {2}role .*: primary\n {2}acl /,
  );
});

test("doctor exits with 1 for a critical finding, also with --json, and prints no password", async () => {
  const url = `redis://:sesame-street@127.0.0.1:${evicting.port}`;
  const told = await holdfast("doctor", "-r", url);
  expect(told.code).toBe(1);
  expect(told.out).toMatch(/^CRITICAL\n {2}eviction .*volatile-ttl/);
  const { code, out, err } = await holdfast("doctor", "-r", url, "--json", "--only", "eviction,role");
  expect(code).toBe(1);
  const document = JSON.parse(out);
  expect(document).toEqual({
    v: 1,
    checks: [
      {
        id: "eviction",
        node: `127.0.0.1:${evicting.port}`,
        severity: "critical",
        status: "finding",
        measured: expect.stringContaining("volatile-ttl"),
        risk: expect.stringContaining("grant it to another client"),
        fix: expect.stringContaining("noeviction"),
      },
      {
        id: "role",
        node: `127.0.0.1:${evicting.port}`,
        severity: "info",
        status: "ok",
        measured: "primary",
        risk: "",
        fix: "",
      },
    ],
  });
  for (const text of [told.out, told.err, out, err]) expect(text).not.toContain("sesame-street");
});

test("doctor exits with 64 for a wrong argument, 69 for an unreachable server, and 77 if the server refuses it", async () => {
  const url = `redis://127.0.0.1:${healthy.port}`;
  const wrong = await holdfast("doctor", "-r", url, "--only", "evicton");
  expect(wrong).toMatchObject({ code: 64, out: "" });
  expect(wrong.err).toContain('got "evicton"');
  expect((await holdfast("doctor", "-r", url, "deploy")).code).toBe(64);
  expect((await holdfast("doctor", "-r", url, "--lease", "1ms")).code).toBe(64);
  expect((await holdfast("doctor")).code).toBe(64);
  const gone = await startRedis();
  await gone.stop();
  expect((await holdfast("doctor", "-r", gone.url, "--connect-timeout", "300ms")).code).toBe(69);
  expect((await holdfast("doctor", "-r", evicting.url)).code).toBe(77);
});
