/** Callers of `once` in processes of their own: many at once, and some that die or stand still. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../../../tests/support/tcp-proxy.js";
import { recipesOnceBegin, recipesOnceSettle } from "../../src/generated/recipes-scripts.js";
import { createHoldfast, type Holdfast } from "../../src/index.js";
import { once } from "../../src/recipes/index.js";
import { expectTakeover, serverMs } from "./takeover.js";

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let key: string;
let programs: Program[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis });
});

afterAll(async () => {
  await holdfast?.close();
  redis?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  key = randomUUID();
});

afterEach(async () => {
  await Promise.all(programs.map((each) => each.kill()));
  programs = [];
});

function program(port = server.port): Program {
  const started = startProgram(new URL("./programs/runner.mjs", import.meta.url), { port });
  programs.push(started);
  return started;
}

function record(): string {
  return `hf:once:{/${key}}`;
}

const request = (sha1: string): RegExp => new RegExp(`^evalsha ${sha1}`, "i");

/** Kills a caller at the moment that `reached` names. */
type Moment = (dying: Program, proxy: TcpProxy) => Promise<unknown>;

interface Called {
  readonly value: number;
  readonly replayed: boolean;
  readonly attempt: number;
}

test("of fifty processes that call at once one runs, and the others get its value", { timeout: 120_000 }, async () => {
  const fifty: Program[] = [];
  // A few at a time: each of them takes its time to start.
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      for (let n = 0; n < 10; n += 1) {
        const started = program();
        fifty.push(started);
        await started.call("ready");
      }
    }),
  );
  const atMs = Date.now() + 500;
  const all = await Promise.all(fifty.map((each) => each.call<Called>("callAt", { key, atMs })));
  expect(all.filter(({ replayed }) => !replayed)).toHaveLength(1);
  expect(all.filter(({ replayed }) => replayed)).toHaveLength(49);
  for (const { value, attempt } of all) expect([value, attempt]).toEqual([all[0]?.value, 1]);
  expect(await redis.get(`${key}:effects`)).toBe("1");
});

// A process takes its time to start on a machine that does something else as well.
describe("processes that die or stand still", { timeout: 60_000 }, () => {
  test.each<[string, { reached: Moment; runs: number; point: object | undefined; workMs: number }]>([
    [
      "when it has the call, and has not begun to work",
      {
        reached: (_, proxy) => proxy.holdReply(request(recipesOnceBegin.sha1)).reached,
        runs: 0,
        point: undefined,
        workMs: 0,
      },
    ],
    [
      "in the middle of its work",
      { reached: (dying) => dying.heard("saved"), runs: 1, point: { by: "dead" }, workMs: 60_000 },
    ],
    [
      "after its work, and before that is recorded",
      {
        reached: (_, proxy) => proxy.hold(request(recipesOnceSettle.sha1)).reached,
        runs: 1,
        point: { by: "dead" },
        workMs: 0,
      },
    ],
  ])("one that is killed %s is followed when its lease is over, with what it had saved", async (_, moment) => {
    const proxy = await startProxy(server.port);
    // Whoever is the first to ask sends the script first.
    await once(holdfast, `${key}:warm`, () => 1);
    const dying = program(proxy.port);
    const reached = moment.reached(dying, proxy);
    const killed = dying.call("run", { key, leaseMs: 1_000, workMs: moment.workMs, mark: "dead" }).catch(() => {});
    await reached;
    await dying.kill();
    await killed;
    expect(await redis.hget(record(), "state")).toBe("running");
    const leaseMs = Number(await redis.hget(record(), "until")) / 1_000;
    const askedMs = await serverMs(redis);
    const result = await once(holdfast, key, ({ saved }) => saved, { waitMs: 60_000 });
    expect(result).toMatchObject({ attempt: 2, value: moment.point, replayed: false });
    expectTakeover(result.token, { leaseMs, askedMs });
    const runs = await redis.lrange(`${key}:runs`, 0, -1);
    expect(runs).toHaveLength(moment.runs);
    for (const run of runs) expect(result.token).toBeGreaterThan(Number(run.split(" ").at(-1)));
    await proxy.close();
  });

  test("one that is killed when its result is recorded, and it does not know, is replayed", async () => {
    const proxy = await startProxy(server.port);
    await once(holdfast, `${key}:warm`, () => 1);
    const dying = program(proxy.port);
    const { reached } = proxy.holdReply(request(recipesOnceSettle.sha1));
    const killed = dying.call("run", { key, leaseMs: 600_000, workMs: 0, mark: "dead" }).catch(() => {});
    await reached;
    await dying.kill();
    await killed;
    const work = vi.fn();
    expect(await once(holdfast, key, work)).toMatchObject({ value: "dead after null", attempt: 1, replayed: true });
    expect(work).not.toHaveBeenCalled();
    await proxy.close();
  });

  test("one that was stopped beyond its lease is too late: the second result is stored, and the first is told", async () => {
    const late = program();
    const saved = late.heard("saved");
    const answer = late.call("run", { key, leaseMs: 500, workMs: 0, mark: "late" });
    await saved;
    late.freeze();
    const isIn = (await redis.hget(record(), "state")) === "done";
    const second = await once(holdfast, key, () => "second", { waitMs: 60_000 });
    late.resume();
    // It may have ended in the moment before it was stopped.
    const told =
      isIn || second.replayed ? { value: second.value } : { error: "OnceLostError", value: "late after null" };
    expect(await answer).toMatchObject(told);
    expect(await once(holdfast, key, () => "third")).toMatchObject({ value: second.value, replayed: true });
  });
});
