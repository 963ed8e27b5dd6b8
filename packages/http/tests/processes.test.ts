/** Services in separate processes, with concurrent requests; some crash or freeze while they handle one. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { expectTakeover, serverMs } from "../../recipes/tests/takeover.js";
import { ADAPTERS } from "./adapters.js";
import { post, type Reply } from "./client.js";

const LEASE_MS = 1_000;
const RUNNING = "urn:holdfast:idempotency:running";
let server: RedisServer;
let redis: Redis;
let key: string;
let programs: Program[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
});
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});
beforeEach(() => {
  key = randomUUID();
});
afterEach(async () => {
  await Promise.all(programs.map((program) => program.kill()));
  programs = [];
});

/** The timeout is long because processes start slowly on a busy machine. */
describe.each(ADAPTERS)("$name", { timeout: 60_000 }, ({ name: framework }) => {
  /** Starts a service whose handler runs for `workMs`, or until `finish` is called. */
  async function start(mark: string, workMs?: number, leaseMs = LEASE_MS): Promise<{ program: Program; url: string }> {
    const args = { port: server.port, framework, leaseMs, mark, workMs };
    const program = startProgram(new URL("./server.mjs", import.meta.url), args);
    programs.push(program);
    const { url } = await program.call<{ url: string }>("listen");
    return { program, url };
  }

  /** Retries while the first request runs, like a client that honors `Retry-After`, but sooner. */
  async function untilAnswered(url: string): Promise<Reply> {
    return await vi.waitFor(
      async () => {
        const reply = await post(url, { key, body: {} });
        expect(JSON.parse(reply.text).type).not.toBe(RUNNING);
        return reply;
      },
      { timeout: 50_000, interval: 20 },
    );
  }

  async function leaseEndsAtMs(): Promise<number> {
    const [record = ""] = (await redis.keys("hf:once:*")).filter((each) => each.includes(key));
    return Number(await redis.hget(record, "until")) / 1_000;
  }

  test("if a process is killed, another one runs the request after its lease ends, not earlier", async () => {
    const [dying, next] = await Promise.all([start("dying", 60_000), start("next", 0)]);
    const began = dying.program.heard("began");
    const lost = post(dying.url, { key, body: {} }).catch(() => "gone");
    await began;
    expect((await post(next.url, { key, body: {} })).status).toBe(409);
    await dying.program.kill();
    expect(await lost).toBe("gone");
    const leaseMs = await leaseEndsAtMs();
    const askedMs = await serverMs(redis);
    const reply = await untilAnswered(next.url);
    expect(JSON.parse(reply.text)).toEqual({ by: "next", attempt: 2 });
    const runs = await redis.lrange(`runs:${key}`, 0, -1);
    expect(runs.map((run) => run.split(" ").slice(0, 2).join(" "))).toEqual(["dying 1", "next 2"]);
    const [first, second] = runs.map((run) => Number(run.split(" ")[2]));
    expect(second).toBeGreaterThan(first as number);
    expectTakeover(second as number, { leaseMs, askedMs });
  });

  test("a process that freezes past its lease responds as unstored; the other response is kept", async () => {
    const [late, next] = await Promise.all([start("late"), start("next", 0)]);
    const began = late.program.heard("began");
    const first = post(late.url, { key, body: {} });
    await began;
    late.program.freeze();
    const reply = await untilAnswered(next.url);
    expect("idempotency-replayed" in reply.headers).toBe(false);
    expect(JSON.parse(reply.text)).toEqual({ by: "next", attempt: 2 });
    late.program.resume();
    await late.program.call("finish");
    const { headers, text } = await first;
    expect([headers["idempotency-status"], JSON.parse(text).by]).toEqual(["unstored", "late"]);
    expect((await post(late.url, { key, body: {} })).text).toBe(reply.text);
  });

  test("fifty concurrent requests with one key run once; the others get 409 or the response", async () => {
    const services = await Promise.all(["a", "b", "c"].map((mark) => start(mark, 50, 600_000)));
    const fifty = (): Promise<Reply[]> =>
      Promise.all(Array.from({ length: 50 }, (_, at) => post(services[at % 3]?.url ?? "", { key, body: {} })));
    const atOnce = await fifty();
    const first = atOnce.filter(({ status, headers }) => status === 200 && !("idempotency-replayed" in headers));
    expect(first).toHaveLength(1);
    const answer = first[0]?.text;
    expect(JSON.parse(answer ?? "")).toMatchObject({ attempt: 1 });
    for (const { status, headers, text } of atOnce) {
      if (status === 200) expect(text).toBe(answer);
      else expect([status, headers["retry-after"], JSON.parse(text).type]).toEqual([409, "1", RUNNING]);
    }
    // Nothing is running anymore, so every request gets the recorded response.
    for (const { status, headers, text } of await fifty()) {
      expect([status, headers["idempotency-replayed"], text]).toEqual([200, "true", answer]);
    }
    expect(await redis.llen(`runs:${key}`)).toBe(1);
  });
});
