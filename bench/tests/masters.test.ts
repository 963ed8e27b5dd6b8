import { afterAll, beforeAll, describe, expect, it } from "vitest";
// The built program, because the processes of the contestants run it.
import type { Contestant } from "../dist/adapters/adapter.js";
import { ADAPTERS, adapterNamed } from "../dist/adapters/all.js";
import { parseArguments } from "../dist/arguments.js";
import { startCluster } from "../dist/cluster.js";
import { runPairs } from "../dist/curves/loads.js";
import { curveOf, type MastersLoad } from "../dist/curves/masters.js";
import { type Server, stopAll } from "../dist/server.js";
import { NAMES, pairsFor } from "../dist/worker/pairs.js";

const MASTERS = 2;
/** Longer than the tests take, so that nothing is granted because a lease or a quiet time has ended. */
const LEASE_MS = 30_000;
const SLOTS = 16_384;
const IN_CLUSTERS = ADAPTERS.filter(({ openCluster }) => openCluster !== undefined).map(({ name }) => name);

let servers: readonly Server[] = [];
beforeAll(async () => {
  servers = await startCluster(MASTERS);
}, 40_000);
afterAll(async () => stopAll(servers));

function connection() {
  return { port: 0, clusterPorts: servers.map(({ port }) => port), autoPipelining: false, leaseMs: LEASE_MS };
}

async function open(name: string): Promise<Contestant> {
  const { clusterPorts } = connection();
  const contestant = await adapterNamed(name).openCluster?.(connection(), clusterPorts);
  if (contestant === undefined) throw new Error(`${name} is not measured in a cluster`);
  return contestant;
}

/** Counts, for each master, the keys whose names contain this word. */
function keysWith(word: string): Promise<number[]> {
  return Promise.all(servers.map(async ({ control }) => (await control.keys(`*${word}*`)).length));
}

describe("a cluster", () => {
  it("has its slots shared evenly, and each master knows all of them", async () => {
    for (const { control } of servers) {
      const ranges = await control.cluster("SLOTS");
      expect(ranges.map(([from, to]) => to - from + 1)).toEqual([SLOTS / MASTERS, SLOTS / MASTERS]);
      expect(new Set(ranges.map(([, , master]) => master?.[1]))).toEqual(new Set(connection().clusterPorts));
    }
  });

  it("with one master that does not know its address can be reached", async () => {
    const alone = await startCluster(1);
    try {
      const clusterPorts = alone.map(({ port }) => port);
      const raw = await adapterNamed("raw").openCluster?.(connection(), clusterPorts);
      await (await raw?.acquire("free"))?.release();
      await raw?.close();
    } finally {
      await stopAll(alone);
    }
  }, 40_000);
});

describe("a contestant in a cluster", () => {
  it.each(IN_CLUSTERS)(
    "has its locks on all masters, and each on one: %s",
    async (name) => {
      const contestant = await open(name);
      const names = Array.from({ length: 20 }, (_, i) => `kept:${name}:${i}`);
      const held = await Promise.all(names.map((one) => contestant.acquire(one)));
      for (const count of await keysWith(`kept:${name}:`)) expect(count).toBeGreaterThan(0);
      for (const one of names) expect((await keysWith(`{${one}}`)).filter((count) => count > 0)).toHaveLength(1);
      await Promise.all(held.map((one) => one.release()));
      // The lock is free again long before its lease ends.
      await (await contestant.acquire(names[0] ?? "")).release();
      await contestant.close();
      // Loading a library can take long on a busy machine.
    },
    60_000,
  );

  it.each(IN_CLUSTERS)(
    "excludes another process of its kind: %s",
    async (name) => {
      const [one, other] = [await open(name), await open(name)];
      const held = await one.acquire(`wanted:${name}`);
      let isReleased = false;
      const next = other.acquire(`wanted:${name}`).then((granted) => {
        expect(isReleased).toBe(true);
        return granted;
      });
      // These requests are sent later on the same connections, so their replies show that the first acquire has arrived.
      for (let i = 0; i < 8; i += 1) await (await other.acquire(`other:${name}:${i}`)).release();
      isReleased = true;
      await held.release();
      await (await next).release();
      await one.close();
      await other.close();
    },
    60_000,
  );
});

describe("a run of free locks", () => {
  it("reports the cost of each process and of all masters together", async () => {
    const options = { name: "raw", connection: connection(), servers, processes: 2, parallel: 8, seconds: 0.3 };
    const load = await runPairs(options);
    expect(load).toMatchObject({ servers: MASTERS, processes: 2 });
    for (const value of [load.rate, load.serverPercent, load.callersPercent, load.readsPerPair])
      expect(value).toBeGreaterThan(0);
    expect(load.busiestPercent).toBeLessThan(load.serverPercent);
    // Two requests, each read once, and few others.
    expect(load.readsPerPair).toBeLessThan(2.5);
  }, 60_000);

  it("uses each name of its prefix and no other, even if the time ends early", async () => {
    const used = new Set<string>();
    const contestant: Contestant = {
      async acquire(name) {
        used.add(name);
        return { release: async () => {} };
      },
      async close() {},
    };
    const done = await pairsFor(contestant, { seconds: 0, parallel: 3, prefix: "mine", atLeast: NAMES });
    expect(done.pairs).toBeGreaterThanOrEqual(NAMES);
    expect(used.size).toBe(NAMES);
    for (const name of used) expect(name).toMatch(/^mine:/);
  });
});

/** A load of `rate` pairs per second, with the time per pair of client and server in µs. */
function load(masters: number, rate: number, callersUs: number, serverUs: number, readsPerPair = 0.2): MastersLoad {
  const percent = (us: number): number => (rate * us) / 1e4;
  return {
    x: masters,
    rate,
    serverPercent: percent(serverUs),
    busiestPercent: percent(serverUs) / masters,
    servers: masters,
    callersPercent: percent(callersUs),
    processes: 1,
    othersPercent: 0,
    readsPerPair,
  };
}

function told(loads: readonly MastersLoad[], cores: number): string {
  return curveOf([{ name: "ours", processes: 1, loads }], cores).sentences.join("\n");
}

describe("the report on masters", () => {
  it("says that cores are used up, if clients and masters share them", () => {
    const words = told([load(1, 19_000, 70, 30), load(2, 19_500, 70, 30)], 2);
    expect(words).toContain("stops growing with the masters between 1 and 2 (1.03 × for 2 × the masters)");
    expect(words).toContain("all that 2 cores have");
    expect(words).toContain("enough for 20,000 pairs/s on one master and 20,000 on 2");
  });

  it("says how many masters one client process can keep busy, by the cost of a pair", () => {
    const few = told([load(1, 14_000, 70, 28)], 16);
    expect(few).toContain("14,300 pairs/s, and a master could serve 35,700");
    expect(few).toContain("can keep 0.40 of a master busy");
    expect(few).toContain("2.5 processes saturate one master");
    expect(told([load(1, 14_000, 10, 28)], 16)).toContain("can keep 2.8 masters busy");
  });

  it("says up to which size it grows, and then that the client is the limit", () => {
    const growing = [load(1, 30_000, 10, 30), load(2, 59_000, 10, 30)];
    expect(told(growing, 16)).toContain("grows with the masters up to 2");
    expect(told([...growing, load(6, 98_000, 10, 30)], 16)).toContain("a caller's one thread is near its limit");
  });

  it("says why a pair costs more on many masters, only if it does", () => {
    const first = load(1, 14_000, 70, 30);
    expect(told([first, load(6, 13_000, 70, 31, 0.9)], 2)).not.toContain("as much in total");
    expect(told([first, load(6, 10_000, 90, 60, 0.2)], 2)).toContain("1.50 × as much in total.");
    expect(told([first, load(6, 10_000, 90, 60, 0.9)], 2)).toContain("read 0.90 times per pair");
  });

  it("is marked as doubtful if other programs used much of the machine", () => {
    const disturbed = { ...load(1, 14_000, 70, 30), othersPercent: 60 };
    expect(told([disturbed], 2)).toContain("The machine was not idle");
    expect(told([load(1, 14_000, 70, 30)], 2)).not.toContain("not idle");
  });
});

describe("the command line", () => {
  it("chooses curves by their names, and only where curves are wanted", () => {
    expect(parseArguments(["--curves", "--only", "masters"]).curves.map(({ name }) => name)).toEqual(["masters"]);
    expect(parseArguments(["--curves"]).curves.length).toBeGreaterThan(1);
    expect(parseArguments([]).curves).toEqual([]);
    expect(() => parseArguments(["--curves", "--only", "hot"])).toThrow("--only must be one or more of waiters");
    expect(() => parseArguments(["--only", "masters"])).toThrow('got "masters"');
  });
});
