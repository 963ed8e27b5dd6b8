/** Callers of `once` in separate processes that crash or freeze. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { startProxy, type TcpProxy } from "../../../tests/support/tcp-proxy.js";
import { recipesOnceBegin, recipesOnceSettle } from "../src/generated/scripts.js";
import { once } from "../src/index.js";
import { useQueueScene } from "./queue-scene.js";
import { expectTakeover, serverMs } from "./takeover.js";

const scene = useQueueScene();
let programs: Program[] = [];
afterEach(async () => {
  await Promise.all(programs.map((each) => each.kill()));
  programs = [];
});

function program(port = scene.server.port): Program {
  const started = startProgram(new URL("./programs/runner.mjs", import.meta.url), { port });
  programs.push(started);
  return started;
}

function record(): string {
  return `hf:once:{/${scene.name}}`;
}

const request = (sha1: string): RegExp => new RegExp(`^evalsha ${sha1}`, "i");

/** Resolves when the caller reaches the moment at which it is to be killed. */
type Moment = (dying: Program, proxy: TcpProxy) => Promise<unknown>;

async function killAt(moment: Moment, call: { leaseMs: number; workMs: number }): Promise<void> {
  const { holdfast, name, server } = scene;
  const proxy = await startProxy(server.port);
  try {
    // Loads the script, because the first caller would send it in an extra request.
    await once(holdfast, `${name}:warm`, () => 1);
    const dying = program(proxy.port);
    const reached = moment(dying, proxy);
    const called = dying.call("run", { key: name, mark: "dead", ...call });
    const missed = called.then((answer) => expect.fail(`it has answered: ${JSON.stringify(answer)}`));
    await Promise.race([reached, missed]);
    await dying.kill();
    await called.catch(() => {});
    await missed.catch(() => {});
  } finally {
    await proxy.close();
  }
}

// Processes start slowly on a busy machine.
describe("processes that crash or freeze", { timeout: 60_000 }, () => {
  test.each<[string, { reached: Moment; runs: number; point: object | undefined; workMs: number }]>([
    [
      "when it holds the call, before its work begins",
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
      "after its work, before the result is recorded",
      {
        reached: (_, proxy) => proxy.hold(request(recipesOnceSettle.sha1)).reached,
        runs: 1,
        point: { by: "dead" },
        workMs: 0,
      },
    ],
  ])("a process killed %s is succeeded after its lease, with its saved progress", async (_, moment) => {
    const { holdfast, name, redis } = scene;
    await killAt(moment.reached, { leaseMs: 1_000, workMs: moment.workMs });
    expect(await redis.hget(record(), "state")).toBe("running");
    const leaseMs = Number(await redis.hget(record(), "until")) / 1_000;
    const askedMs = await serverMs(redis);
    const result = await once(holdfast, name, ({ saved }) => saved, { waitMs: 60_000 });
    expect(result).toMatchObject({ attempt: 2, value: moment.point, replayed: false });
    expectTakeover(result.token, { leaseMs, askedMs });
    const runs = await redis.lrange(`${name}:runs`, 0, -1);
    expect(runs).toHaveLength(moment.runs);
    for (const run of runs) expect(result.token).toBeGreaterThan(Number(run.split(" ").at(-1)));
  });

  test("one killed after its result is recorded but before the reply is replayed", async () => {
    const { holdfast, name } = scene;
    const moment: Moment = (_, proxy) => proxy.holdReply(request(recipesOnceSettle.sha1)).reached;
    await killAt(moment, { leaseMs: 600_000, workMs: 0 });
    const work = vi.fn();
    expect(await once(holdfast, name, work)).toMatchObject({ value: "dead after null", attempt: 1, replayed: true });
    expect(work).not.toHaveBeenCalled();
  });

  test("one frozen beyond its lease gets an OnceLostError, and the second result is stored", async () => {
    const { holdfast, name } = scene;
    const late = program();
    const saved = late.heard("saved");
    const answer = late.call("run", { key: name, leaseMs: 2_000, mark: "late" });
    await saved;
    late.freeze();
    const second = await once(holdfast, name, () => "second", { waitMs: 60_000 });
    expect(second).toMatchObject({ value: "second", attempt: 2, replayed: false });
    late.resume();
    await late.call("finish");
    expect(await answer).toMatchObject({ error: "OnceLostError", value: "late after null" });
    expect(await once(holdfast, name, () => "third")).toMatchObject({ value: "second", replayed: true });
  });
});
