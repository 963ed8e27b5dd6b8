/** Each example with a `package.json` works when started from its folder, as `npm start` does. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";

// Each test starts programs with frameworks, which takes much longer on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let started: ChildProcess[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis });
});
beforeEach(() => redis.flushall());
afterEach(() => {
  for (const child of started) child.kill("SIGKILL");
  started = [];
});
afterAll(async () => {
  await holdfast.close();
  redis.disconnect();
  await server.stop();
});

/** A running script of an example. */
interface Started {
  readonly child: ChildProcess;
  /** Its lines of output. */
  readonly lines: AsyncIterator<string>;
}

interface StartOptions {
  readonly script?: string;
  /** The port of a service; 0 for any. */
  readonly port?: number;
  readonly stderr?: "inherit" | "pipe";
}

/** Starts a script of an example. @param where  "on a server", or with locks in the process itself */
function start(example: string, where: string, options: StartOptions = {}): Started {
  const { script = "start", port = 0, stderr = "inherit" } = options;
  const folder = new URL(`../${example}/`, import.meta.url);
  const { scripts } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8")) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const { REDIS_URL: _, ...inherited } = process.env;
  // The program replaces the shell, so that a signal reaches it.
  const child = spawn("sh", ["-c", `exec ${scripts[script]}`], {
    cwd: fileURLToPath(folder),
    env: { ...inherited, PORT: String(port), ...(where === "on a server" && { REDIS_URL: server.url }) },
    stdio: ["ignore", "pipe", stderr],
  });
  started.push(child);
  return { child, lines: createInterface({ input: child.stdout as Readable })[Symbol.asyncIterator]() };
}

/** Resolves with the address that a service prints. */
async function addressOf({ lines }: Started): Promise<string> {
  const { value } = await lines.next();
  const [, address] = /^listening on (http:.+)$/.exec(value ?? "") ?? [];
  if (address === undefined) throw new Error(`no address: ${value}`);
  return address;
}

/** Resolves with the output lines of a script when it has ended without an error. */
async function outputOf({ child, lines }: Started): Promise<string[]> {
  const ended = once(child, "exit");
  const printed: string[] = [];
  for (let line = await lines.next(); line.done !== true; line = await lines.next()) printed.push(line.value);
  expect(await ended).toEqual([0, null]);
  return printed;
}

const post = (address: string, path: string): Promise<Response> => fetch(`${address}${path}`, { method: "POST" });

describe.each(["in its process", "on a server"])("%s,", (where) => {
  test.each(["express", "nestjs/service"])("%s charges an invoice once and ends at SIGTERM", async (example) => {
    const service = start(example, where);
    const address = await addressOf(service);
    const answers = await Promise.all(Array.from({ length: 4 }, () => post(address, "/invoices/7/close")));
    // On a slow machine, a request may have waited too long.
    const closed = answers.filter(({ status }) => status !== 503);
    const texts = await Promise.all(closed.map((answer) => answer.text()));
    expect(texts.filter((text) => text.includes("true"))).toEqual(['{"invoice":"7","charged":true}']);
    const ended = once(service.child, "exit");
    service.child.kill("SIGTERM");
    // Nest ends by the signal itself.
    expect([0, "SIGTERM"]).toContain((await ended).find((end) => end !== null));
  });

  test("express reports a port that is in use, and ends", async () => {
    const { child, lines } = start("express", where, { port: server.port, stderr: "pipe" });
    const ended = once(child, "exit");
    const [complaint, printed] = await Promise.all([text(child.stderr as Readable), lines.next()]);
    expect(complaint).toMatch(/^cannot listen on port \d+: .*EADDRINUSE.*\n$/);
    expect(printed.done).toBe(true);
    expect(await ended).toEqual([1, null]);
  });

  test("nextjs makes a report and ends at SIGTERM", async () => {
    const service = start("nextjs", where);
    const ended = once(service.child, "exit");
    const made = await post(await addressOf(service), "/reports/june");
    expect([made.status, await made.json()]).toEqual([200, { report: "june" }]);
    service.child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });

  test("cron makes a report", async () => {
    expect(await outputOf(start("cron", where))).toEqual(["made a report of 12 pages"]);
  });
});

test("express finishes a request that waits for its lock at SIGTERM", async () => {
  const service = start("express", "on a server");
  const ended = once(service.child, "exit");
  const address = await addressOf(service);
  const mutex = holdfast.mutex("invoice:7");
  const lease = await mutex.acquire();
  let answer: string | undefined;
  const answered = post(address, "/invoices/7/close").then(async (response) => {
    answer = `${response.status} ${await response.text()}`;
  });
  const waits = async () => answer !== undefined || (await mutex.inspect()).waiterCount === 1;
  await expect.poll(waits, { timeout: 200_000 }).toBe(true);
  service.child.kill("SIGTERM");
  const probe = () => fetch(address).then(String, () => "refused");
  await expect.poll(probe, { timeout: 200_000 }).toBe("refused");
  await lease.release();
  await answered;
  // On a slow machine, the request may have waited too long.
  const busy = '503 {"error":"the invoice is being closed"}';
  expect(['200 {"invoice":"7","charged":true}', busy]).toContain(answer);
  expect(await ended).toEqual([0, null]);
  expect(await mutex.inspect()).toMatchObject({ holders: [], waiterCount: 0 });
});

test("nextjs replies 409 while the report is made", async () => {
  const address = await addressOf(start("nextjs", "on a server"));
  const lease = await holdfast.mutex("report:june").acquire();
  const refused = await post(address, "/reports/june");
  expect(refused.status).toBe(409);
  expect(await refused.json()).toEqual({ error: "the report is being made" });
  await lease.release();
  expect((await post(address, "/reports/june")).status).toBe(200);
});

test("cron: of several hosts, one makes the report", async () => {
  const hosts = Array.from({ length: 3 }, () => start("cron", "on a server"));
  const printed = (await Promise.all(hosts.map(outputOf))).flat().sort();
  expect(printed).toEqual(["made a report of 12 pages", "skipped (already-done)", "skipped (already-done)"]);
});

test("shell: of several hosts, one makes the report, and the other prints that it skips it", async () => {
  const hosts = Array.from({ length: 2 }, () => start("shell", "on a server", { stderr: "pipe" }));
  const complaints = Promise.all(hosts.map(({ child }) => text(child.stderr as Readable)));
  const printed = (await Promise.all(hosts.map(outputOf))).flat();
  expect(printed).toEqual([expect.stringMatching(/^report made with token \d+$/)]);
  expect((await complaints).filter((complaint) => complaint.startsWith("holdfast: daily-report"))).toHaveLength(1);
  // The two examples do not exclude each other.
  expect(await outputOf(start("cron", "on a server"))).toEqual(["made a report of 12 pages"]);
});

test("shell: a script waits for the previous holder, and holds the lock for all its steps", async () => {
  const mutex = holdfast.mutex("deploy");
  const lease = await mutex.acquire();
  const output = outputOf(start("shell", "on a server", { script: "deploy" }));
  await expect.poll(async () => (await mutex.inspect()).waiterCount, { timeout: 200_000 }).toBe(1);
  await lease.release();
  const [first = "", ...rest] = await output;
  expect(Number(/^migrating the database with token (\d+)$/.exec(first)?.[1])).toBeGreaterThan(lease.token);
  expect(rest).toEqual(["replacing the servers"]);
  expect(await mutex.inspect()).toMatchObject({ holders: [], waiterCount: 0 });
});
