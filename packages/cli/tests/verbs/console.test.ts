import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { execPath } from "node:process";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { type Answer, talkingTo } from "../../../console/tests/scene.js";
import { until } from "../../../holdfast/src/testing/delays.js";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const running: ChildProcess[] = [];
let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterEach(() => {
  for (const child of running.splice(0)) child.kill("SIGKILL");
});
afterAll(() => server.stop());

interface Running {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  readonly code: Promise<number | null>;
}

function start(args: readonly string[], env: Record<string, string> = {}): Running {
  const child = spawn(execPath, [MAIN, "console", ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.push(child);
  let [out, err] = ["", ""];
  child.stdout?.on("data", (chunk) => {
    out += chunk;
  });
  child.stderr?.on("data", (chunk) => {
    err += chunk;
  });
  const code = once(child, "close").then(([exit]) => exit as number | null);
  return { child, stdout: () => out, stderr: () => err, code };
}

async function addressOf(one: Running): Promise<{ port: number; token: string; base: string }> {
  await until(() => one.stdout().includes("\n") || one.child.exitCode !== null, "it prints its address");
  const [, port = "", base = "", token = ""] =
    /^http:\/\/[^:]+:(\d+)([^#\n]*)\/(?:#token=(\S+))?\n/.exec(one.stdout()) ?? [];
  if (port === "") throw new Error(`no address: ${one.stdout()} ${one.stderr()}`);
  return { port: Number(port), token, base };
}

describe("holdfast console", () => {
  it("prints an address with a new token after the #, accepts that token, and ends on TERM", async () => {
    const one = start(["-r", server.url, "-p", "0"]);
    const { port, token } = await addressOf(one);
    expect(token.length).toBeGreaterThanOrEqual(32);
    const as = (word: string): Promise<Answer> =>
      talkingTo(port).ask("api/locks", { headers: { authorization: `Bearer ${word}` } });
    expect((await as(token)).status).toBe(200);
    expect((await as("not the token at all")).status).toBe(401);
    const page = await talkingTo(port).ask("api/redis", { headers: { authorization: `Bearer ${token}` } });
    expect(page.json).toMatchObject({
      topology: "single",
      hasServerFacts: true,
      hasDoctor: true,
      nodes: [{ role: "primary", address: `127.0.0.1:${server.port}` }],
    });
    one.child.kill("SIGTERM");
    expect(await one.code).toBe(0);
  });

  it("reads every flag from its variable, and prints no secret", async () => {
    const env = {
      HOLDFAST_REDIS: server.url.replace("redis://", "redis://default:hunter22222@"),
      HOLDFAST_CONSOLE_TOKEN: "a-token-from-the-environment",
      HOLDFAST_CONSOLE_PORT: "0",
      HOLDFAST_CONSOLE_ALLOW: "pause,resume",
      HOLDFAST_CONSOLE_ENV: "prod",
      HOLDFAST_CONSOLE_BASE_PATH: "/ops",
      HOLDFAST_CONSOLE_REDACT: "label",
    };
    const one = start([], env);
    const { port, token, base } = await addressOf(one);
    expect([token, base]).toEqual(["", "/ops"]);
    const headers = { authorization: "Bearer a-token-from-the-environment" };
    const { json } = await talkingTo(port, "/ops").ask("api/session", { headers });
    expect(json).toMatchObject({
      allow: ["pause", "resume"],
      env: { name: "prod", tone: "danger" },
      redacted: ["label"],
    });
    one.child.kill("SIGINT");
    expect(await one.code).toBe(0);
    expect(one.stderr()).toContain("; allowed actions: pause, resume. Press Ctrl-C to stop.\n");
    expect(one.stdout() + one.stderr()).not.toMatch(/hunter|a-token-from/);
  });

  it("exits with 64 if other hosts could connect without a token, or if a flag is wrong", async () => {
    const cases: [string[], RegExp][] = [
      [["--host", "0.0.0.0"], /--token/],
      [["--host", "::"], /--token/],
      [["--token", "short"], /16 to 1024/],
      [["--allow", "everything"], /release,pause/],
      [["-p", "99999"], /0 to 65535/],
      [["--redact", "names"], /label,value/],
      [["--base-path", "ops"], /\/ops\/locks/],
      [["--poll", "1ms"], /--poll/],
      [["some-name"], /no names/],
    ];
    const runs = cases.map(([args]) => start(["-r", server.url, ...args]));
    for (const [i, [args, word]] of cases.entries()) {
      const one = runs[i] as Running;
      expect([args, await one.code]).toEqual([args, 64]);
      expect(one.stderr()).toMatch(word);
      expect(one.stdout()).toBe("");
    }
  });

  it("starts without Redis, but exits with 69 if --no-retry is given", async () => {
    const late = await startRedis();
    const { url } = late;
    await late.kill();
    const patient = start(["-r", url, "-p", "0", "--connect-timeout", "300ms"]);
    const strict = start(["-r", url, "-p", "0", "--no-retry", "--connect-timeout", "300ms"]);
    expect(await strict.code).toBe(69);
    const { port, token } = await addressOf(patient);
    const asked = (): Promise<Answer> =>
      talkingTo(port).ask("api/locks", { headers: { authorization: `Bearer ${token}` } });
    const { status, json } = await asked();
    expect([status, json.code]).toEqual([503, "redis-down"]);
    await late.restart();
    await until(async () => (await asked()).status === 200, "it has found Redis");
    await late.kill();
    await until(async () => (await asked()).json.code === "redis-down", "it has noticed");
    await late.restart();
    await until(async () => (await asked()).status === 200, "it has found Redis again");
    expect(patient.stderr()).not.toMatch(/Error/);
    await late.stop();
    patient.child.kill("SIGTERM");
    expect(await patient.code).toBe(0);
  });

  it("runs the doctor on request", async () => {
    const one = start(["-r", server.url, "-p", "0"]);
    const { port, token } = await addressOf(one);
    const headers = { authorization: `Bearer ${token}` };
    expect((await talkingTo(port).ask("api/doctor", { headers })).json).toMatchObject({ ranAtMs: null, checks: [] });
    const { status, json } = await talkingTo(port).ask("api/doctor", { method: "POST", headers });
    expect(status).toBe(200);
    expect(json.checks.find(({ id }: { id: string }) => id === "scripts")).toMatchObject({ status: "ok" });
    expect((await talkingTo(port).ask("api/doctor", { method: "POST", headers })).status).toBe(429);
  });
});
