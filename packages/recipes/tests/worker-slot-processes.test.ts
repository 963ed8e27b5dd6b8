/**
 * More workers than numbers in separate processes. Some are killed or frozen, and some have wrong clocks.
 *
 * `HOLDFAST_SOAK_SLOTS=1` runs the full test: 1,030 workers for 1,024 numbers, and 50 id generators for 90 seconds.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { eventually, useLeadScene } from "./lead-scene.js";

const IS_FULL = process.env.HOLDFAST_SOAK_SLOTS !== undefined;
const scene = useLeadScene();
let programs: Program[];

beforeEach(() => {
  programs = [];
});
afterEach(() => Promise.all(programs.map((each) => each.kill())));

function program(offsetMs = 0): Program {
  const started = startProgram(new URL("./programs/worker.mjs", import.meta.url), {
    port: scene.server.port,
    offsetMs,
  });
  programs.push(started);
  return started;
}

interface Taken {
  readonly numbers: readonly number[];
  /** The token of each number. */
  readonly tokens: readonly number[];
  readonly errors: readonly string[];
}

/** When the lease of each number ends on the server, including its rest, in microseconds since 1970. */
async function endsOfNumbers(name: string): Promise<Map<number, number>> {
  const state = `hf:semaphore:{${name}}`;
  const [grants, ends] = await Promise.all([
    scene.redis.hgetall(state),
    scene.redis.zrange(`${state}:holders`, "0", "-1", "WITHSCORES"),
  ]);
  const endsAt = new Map<number, number>();
  for (let at = 0; at + 1 < ends.length; at += 2) {
    const number = /^1\/\d+\/(\d+)$/.exec(grants[ends[at] ?? ""] ?? "")?.[1];
    if (number !== undefined) endsAt.set(Number(number), Number(ends[at + 1]));
  }
  return endsAt;
}

describe("numbers", { timeout: 600_000 }, () => {
  const count = IS_FULL ? 1_024 : 122;
  const more = IS_FULL ? 6 : 3;

  test(`are unique: of ${count + more} workers ${count} get one and the rest wait`, async () => {
    const { name } = scene;
    const processes = Array.from({ length: 5 }, () => program());
    const many = (count + more) / processes.length;
    const asked = processes.map((each) =>
      each.call<Taken>("take", { name, count, many, leaseMs: 600_000, waitMs: Number.POSITIVE_INFINITY }),
    );
    const semaphore = scene.another().semaphore(name, { permits: count });
    await vi.waitFor(
      async () => expect(await semaphore.inspect()).toMatchObject({ used: count, waiterCount: more }),
      IS_FULL ? { timeout: 300_000, interval: 500 } : eventually,
    );
    await Promise.all(processes.map((each) => each.call("giveUp")));
    const taken = await Promise.all(asked);
    const numbers = taken.flatMap((each) => each.numbers).toSorted((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: count }, (_, at) => at));
    expect(taken.flatMap(({ errors }) => errors)).toEqual(Array.from({ length: more }, () => "gave up"));

    // Most processes are killed and one releases its numbers. Only the released numbers can be taken immediately.
    const [leaving, staying, ...dying] = processes;
    await Promise.all(dying.map((each) => each.kill()));
    await leaving?.call("giveBack");
    const left = taken[0]?.numbers.length ?? 0;
    const next = await program().call<Taken>("take", { name, count, many: left, waitMs: 300_000 });
    expect(next.numbers.toSorted((a, b) => a - b)).toEqual(taken[0]?.numbers.toSorted((a, b) => a - b));
    // The numbers of killed workers stay reserved until their lease and their rest are over.
    expect(await semaphore.inspect()).toMatchObject({ used: count });
    expect(await staying?.call("spin", { forMs: 0 })).toEqual(taken[1]?.numbers.map(() => true));
  });

  test("of killed workers are free again only after their lease and their rest", async () => {
    const { name } = scene;
    const how = { name, count: 20, many: 20, waitMs: 60_000 };
    const dying = program();
    const first = await dying.call<Taken>("take", { ...how, leaseMs: 1_500, restMs: 500 });
    await dying.kill();
    const endsAt = await endsOfNumbers(name);
    expect(endsAt.size).toBe(20);
    for (const [at, number] of first.numbers.entries()) {
      const grantedAt = first.tokens[at] ?? Number.NaN;
      expect(endsAt.get(number), `number ${number}`).toBeGreaterThanOrEqual(grantedAt + 2_000_000);
    }
    const next = await program().call<Taken>("take", how);
    expect(next.numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, at) => at));
    // A token is the server time of its grant.
    for (const [at, number] of next.numbers.entries()) {
      expect(next.tokens[at], `number ${number}`).toBeGreaterThanOrEqual(endsAt.get(number) ?? Number.NaN);
    }
  });

  test("of a frozen process are no longer held as soon as it resumes", async () => {
    const { name } = scene;
    const stopped = program();
    await stopped.call("take", { name, count: 5, many: 5, leaseMs: 500, restMs: 0, waitMs: 60_000 });
    const spinning = stopped.heard("spinning");
    const held = stopped.call<boolean[]>("spin", { forMs: 500 });
    await spinning;
    stopped.freeze();
    const next = await program().call<Taken>("take", { name, count: 5, many: 5, waitMs: 60_000 });
    expect(next.numbers.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4]);
    stopped.resume();
    expect(await held).toEqual([false, false, false, false, false]);
  });
});

test("ids are unique even if generators freeze, crash or have clocks that jump", {
  timeout: 600_000,
}, async () => {
  const generators = IS_FULL ? 50 : 6;
  const forMs = IS_FULL ? 90_000 : 5_000;
  const leaseMs = IS_FULL ? 4_000 : 500;
  const folder = mkdtempSync(join(tmpdir(), "holdfast-ids-"));
  try {
    const { name } = scene;
    // Fewer numbers than generators, so that each number has many holders.
    const count = Math.ceil(generators / 2);
    let files = 0;
    const start = (): Program => {
      const started = program(Math.round((Math.random() - 0.5) * 2_000));
      const file = join(folder, `${files++}`);
      started.call("generate", { name, count, leaseMs, restMs: leaseMs / 4, file }).catch(() => {});
      return started;
    };
    const running = Array.from({ length: generators }, start);
    const endsAtMs = performance.now() + forMs;
    const ids = (): string[] =>
      readdirSync(folder).flatMap((file) => readFileSync(join(folder, file), "utf8").trim().split("\n"));
    const done = { kills: 0, pauses: 0, steps: 0 };
    while (performance.now() < endsAtMs || done.kills < 3 || done.pauses < 3 || done.steps < 3) {
      await new Promise((resolve) => setTimeout(resolve, forMs / 50));
      const at = Math.floor(Math.random() * running.length);
      const one = running[at] as Program;
      const dice = Math.random();
      if (dice < 0.2) {
        done.kills += 1;
        await one.kill();
        running[at] = start();
      } else if (dice < 0.6) {
        done.pauses += 1;
        one.freeze();
        setTimeout(() => one.resume(), leaseMs * (0.25 + 2 * Math.random()));
      } else {
        done.steps += 1;
        one.call("step", { byMs: Math.round((Math.random() - 0.5) * 2 * leaseMs) }).catch(() => {});
      }
    }
    await vi.waitFor(() => expect(new Set(ids().map((id) => id.split("-")[1])).size).toBe(count), eventually);
    await Promise.all(running.map((each) => each.kill()));
    // A killed process may leave its last line incomplete.
    const all = ids().filter((id) => /^\d+-\d+-\d+$/.test(id));
    if (IS_FULL) console.log(`${all.length} ids of ${files} generators with ${count} numbers`, done);
    expect(all.length).toBeGreaterThan(100);
    expect(new Set(all).size).toBe(all.length);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
