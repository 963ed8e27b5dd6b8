import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Contestant, Held } from "../dist/adapters/adapter.js";
import { ADAPTERS, adapterNamed } from "../dist/adapters/all.js";
import { compare } from "../dist/compare.js";
import { runCrowd } from "../dist/measurements/crowds.js";
import type { Conditions } from "../dist/measurements/entry.js";
import { redlockQuorum } from "../dist/measurements/redlock.js";
// The built program, since contestants are measured in processes that run it.
import { type Server, startServers, stopAll } from "../dist/server.js";

/** Far away from the time that the tests take: nothing is free because a lease has ended. */
const LEASE_MS = 30_000;
const MAJORITY = 3;
const ON_SEVERAL = ADAPTERS.filter(({ openQuorum }) => openQuorum !== undefined).map(({ name }) => name);

let servers: readonly Server[] = [];
beforeAll(async () => {
  servers = await startServers(redlockQuorum.servers ?? 0);
});
afterAll(async () => stopAll(servers));

function ports(): number[] {
  return servers.map(({ port }) => port);
}

function conditions(leaseMs: number): Conditions {
  const [server] = servers;
  if (server === undefined) throw new Error("there is no server");
  const connection = { port: server.port, quorumPorts: ports(), autoPipelining: false, leaseMs };
  return { server, servers, connection, seconds: 0.1, repetitions: 1, callers: 1, leases: 1, waiters: 1 };
}

/** How many servers have a key that is held there until its lease ends. */
async function serversWith(key: string): Promise<number> {
  const found = await Promise.all(servers.map(({ control }) => control.exists(key)));
  return found.reduce((sum, one) => sum + one, 0);
}

async function open(name: string): Promise<Contestant> {
  const contestant = await adapterNamed(name).openQuorum?.(conditions(LEASE_MS).connection, ports());
  if (contestant === undefined) throw new Error(`${name} has no lock on several servers`);
  return contestant;
}

describe("a raw lock on several servers", () => {
  it("is taken on all of them, and given back on all of them", async () => {
    const raw = await open("raw");
    const held = await raw.acquire("free");
    expect(await serversWith("raw:{free}")).toBe(servers.length);
    await held.release();
    expect(await serversWith("raw:{free}")).toBe(0);
    await raw.close();
  });

  it("is held with a majority, and by nobody with less", async () => {
    const raw = await open("raw");
    const others = servers.slice(0, MAJORITY);
    await Promise.all(others.map(({ control }) => control.set("raw:{taken}", "somebody else")));
    let held: Held | undefined;
    const acquiring = raw.acquire("taken").then((granted) => {
      held = granted;
    });
    // It has tried, and has given back what a minority had granted.
    const attempts = async (): Promise<number> => {
      const info = (await servers.at(-1)?.control.info("commandstats")) ?? "";
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0);
    };
    const before = await attempts();
    while ((await attempts()) < before + 2) await sleep(1);
    expect(held).toBeUndefined();
    await others[0]?.control.del("raw:{taken}");
    await acquiring;
    expect(await serversWith("raw:{taken}")).toBe(servers.length);
    await held?.release();
    expect(await serversWith("raw:{taken}")).toBe(MAJORITY - 1);
    await raw.close();
  });
});

describe("Redlock on five servers", () => {
  it("is measured for everybody who has such a lock, and both targets are told", async () => {
    const { outcomes, targets } = await compare(
      { ...redlockQuorum, rounds: 1 },
      ADAPTERS,
      conditions(LEASE_MS),
      () => {},
    );
    const measured = outcomes.filter(({ summaries }) => summaries.length > 0);
    expect(measured.map(({ name }) => name)).toEqual(ON_SEVERAL);
    expect(ON_SEVERAL).toEqual(expect.arrayContaining(["raw", "holdfast", "redlock"]));
    for (const { summaries } of measured) for (const { median } of summaries) expect(median).toBeGreaterThan(0);
    expect(targets.map(({ reached }) => typeof reached)).toEqual(["boolean", "boolean"]);
  });

  it("serves two processes in turn", async () => {
    const { sections } = await runCrowd(
      { name: "holdfast", lock: "turns", processes: 2, callers: 1, sectionMs: 1 },
      conditions(3_000),
    );
    expect(sections.length).toBeGreaterThan(0);
  });

  it("is refused when a lock is granted twice", async () => {
    let isOver = false;
    const takeAway = async (): Promise<void> => {
      while (!isOver) {
        await Promise.all(servers.slice(0, MAJORITY).map(({ control }) => control.del("raw:{hot}")));
        await sleep(1);
      }
    };
    const taking = takeAway();
    try {
      const run = runCrowd({ name: "raw", processes: 2, callers: 2, sectionMs: 5, warmUpMs: 50 }, conditions(LEASE_MS));
      await expect(run).rejects.toThrow("exclusion was broken");
    } finally {
      isOver = true;
      await taking;
    }
  });
});
