/** When a server may grant: the decision as a table, and the script on a real server. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { serverLineage } from "../../src/generated/scripts.js";
import { sharesScripts } from "./shared-scripts.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(() => server.command("FLUSHALL"));

const FRAGMENT = readFileSync(new URL("../../src/lua/lineage-verdict.lua", import.meta.url), "utf8");
const NOW_MS = 1_000_000;
const LEASE_MS = 30_000;

interface Facts {
  readonly isPromoted?: boolean;
  readonly upMs?: number;
  readonly settled?: string;
  readonly pending?: string;
  readonly sinceMs?: number;
  readonly isStrict?: boolean;
  readonly isShard?: boolean;
  readonly isAlone?: boolean;
}

/** The result of `verdict` for a server whose run is `self`. */
async function verdict(facts: Facts): Promise<unknown> {
  const {
    isPromoted = false,
    upMs = LEASE_MS * 10,
    settled,
    pending,
    sinceMs = 0,
    isStrict = false,
    isShard = false,
    isAlone = false,
  } = facts;
  const text = (run: string | undefined): string => (run === undefined ? "false" : `'${run}'`);
  const call = `verdict('self', ${isPromoted}, ${upMs}, ${text(settled)}, ${text(pending)}, ${sinceMs}, ${LEASE_MS}, ${isStrict}, ${NOW_MS}, ${isShard}, ${isAlone})`;
  const [restMs, since] = (await server.command("EVAL", `${FRAGMENT}\nreturn {${call}}`, 0)) as number[];
  return restMs === 0 ? 0 : [restMs, since];
}

describe("the verdict", () => {
  const untilMs = (restMs: number, sinceMs: number): number[] => [restMs, sinceMs];
  test.each<[string, Facts, unknown]>([
    ["is to grant if the marker belongs to this run, as after a flush of the script cache", { settled: "self" }, 0],
    [
      "is to grant if the marker belongs to this run, even after a promotion and a recent start",
      { settled: "self", isPromoted: true, upMs: 0, isStrict: true },
      0,
    ],
    ["is to grant without a marker if the server was never promoted, because this is the first use", {}, 0],
    [
      "is to wait without a marker after a promotion, because the marker may not have been replicated",
      { isPromoted: true },
      untilMs(LEASE_MS, NOW_MS),
    ],
    [
      "is to wait if the marker belongs to another run, as after a takeover or a restart with its data",
      { settled: "other" },
      untilMs(LEASE_MS, NOW_MS),
    ],
    [
      "keeps the end of a wait that has begun",
      { settled: "other", pending: "self", sinceMs: NOW_MS - 10_000 },
      untilMs(20_000, NOW_MS - 10_000),
    ],
    [
      "is to wait until one millisecond before the end",
      { settled: "other", pending: "self", sinceMs: NOW_MS - LEASE_MS + 1 },
      untilMs(1, NOW_MS - LEASE_MS + 1),
    ],
    ["is to grant after a wait of a whole lease", { settled: "other", pending: "self", sinceMs: NOW_MS - LEASE_MS }, 0],
    [
      "starts a new wait if the recorded one belongs to another run",
      { settled: "other", pending: "third", sinceMs: NOW_MS - 10_000 },
      untilMs(LEASE_MS, NOW_MS),
    ],
    [
      "is to wait if only a wait of another run is recorded",
      { pending: "third", sinceMs: NOW_MS - LEASE_MS },
      untilMs(LEASE_MS, NOW_MS),
    ],
    [
      "is to wait for at most one lease from now if the clock was set back",
      { settled: "other", pending: "self", sinceMs: NOW_MS + 99_000 },
      untilMs(LEASE_MS, NOW_MS + 99_000),
    ],
    [
      "counts from the start of a server that was never promoted and got the marker with a slot",
      { settled: "other", upMs: 10_000, isShard: true },
      untilMs(20_000, NOW_MS - 10_000),
    ],
    ["is to grant if that server was started a full lease ago", { settled: "other", upMs: LEASE_MS, isShard: true }, 0],
    [
      "is to wait if a promoted server got the marker with a slot",
      { settled: "other", isPromoted: true, isShard: true },
      untilMs(LEASE_MS, NOW_MS),
    ],
    [
      "is to wait in strict mode without a marker on a server that was just started",
      { isStrict: true, upMs: 10_000 },
      untilMs(20_000, NOW_MS - 10_000),
    ],
    [
      "is to grant in strict mode without a marker on a server that was started a full lease ago",
      { isStrict: true, upMs: LEASE_MS },
      0,
    ],
    ["is to grant in auto mode without a marker on a server that was just started", { upMs: 0 }, 0],
    [
      "is to wait for an hour on a quorum server that reached too few others, because a forgotten lease may be longer than any known one",
      { isStrict: true, isAlone: true, upMs: 300_000 },
      untilMs(3_300_000, NOW_MS - 300_000),
    ],
    ["is to grant on such a quorum server after an hour", { isStrict: true, isAlone: true, upMs: 3_600_000 }, 0],
    [
      "is to wait for an hour on such a quorum server if the marker belongs to another run",
      { settled: "other", isStrict: true, isAlone: true },
      untilMs(3_600_000, NOW_MS),
    ],
    [
      "is to grant on such a quorum server if the marker belongs to this run",
      { settled: "self", isStrict: true, isAlone: true },
      0,
    ],
  ])("%s", async (_, facts, expected) => {
    expect(await verdict(facts)).toEqual(expected);
  });
});

describe("the script", () => {
  /** Returns the reply without what follows its numbers: the run id, and whether replicas get scripts. */
  const numbersOf = async (reply: readonly unknown[]): Promise<unknown[]> => {
    const about = [await runId(), ...((await sharesScripts(server)) ? ["shared"] : [])];
    expect(reply.slice(-about.length)).toEqual(about);
    return reply.slice(0, -about.length);
  };
  const ask = async (leaseMs: number, strict = 0, place = "server", vouched = ""): Promise<unknown> => {
    const words = [serverLineage.source, 1, "hf:lineage", leaseMs, strict, place, vouched];
    return numbersOf((await server.command("EVAL", ...words)) as unknown[]);
  };
  const marker = async (): Promise<Record<string, string>> => {
    const words = (await server.command("HGETALL", "hf:lineage")) as string[];
    return Object.fromEntries(words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1] ?? ""]] : [])));
  };
  const runId = async (): Promise<string> => {
    const process = /run_id:(\w+)/.exec(String(await server.command("INFO", "server")))?.[1] ?? "none";
    const replication = String(await server.command("INFO", "replication"));
    const isPromoted = !/master_replid2:0+\r/.test(replication);
    return isPromoted ? `${process}/${/master_replid:(\w+)/.exec(replication)?.[1]}` : process;
  };

  test("writes the marker at the first use and keeps the longest reported lease", async () => {
    expect(await ask(30_000)).toEqual([0, 30_000]);
    expect(await ask(60_000)).toEqual([0, 60_000]);
    expect(await ask(1_000)).toEqual([0, 60_000]);
    expect(await marker()).toMatchObject({ run: await runId(), longestMs: "60000" });
    expect(Number(await server.command("PTTL", "hf:lineage"))).toBeGreaterThan(60_000);
  });

  test("gives concurrent callers the same end, and a longer lease moves it", async () => {
    await server.command("HSET", "hf:lineage", "run", "another", "longestMs", 30_000);
    const [[first, , restMs], [second, , sameMs]] = (await Promise.all([ask(1_000), ask(1_000)])) as [
      number[],
      number[],
    ];
    expect([first, second]).toEqual([1, 1]);
    expect(restMs).toBeGreaterThan(29_000);
    expect(sameMs).toBeGreaterThan(29_000);
    const { sinceMs } = await marker();
    const [, , longerMs] = (await ask(90_000)) as number[];
    expect(longerMs).toBeGreaterThan(89_000 - 29_000);
    expect(longerMs).toBeLessThanOrEqual(90_000);
    expect((await marker()).sinceMs, "the wait goes on from where it began").toBe(sinceMs);
    expect(await marker()).toMatchObject({ run: "another", pending: await runId() });
  });

  test("records in the marker that a wait is over", async () => {
    await server.command(
      "HSET",
      "hf:lineage",
      "run",
      "another",
      "longestMs",
      30_000,
      "pending",
      await runId(),
      "sinceMs",
      1,
    );
    expect(await ask(30_000)).toEqual([0, 30_000]);
    const { run, pending, sinceMs } = await marker();
    expect([run, pending, sinceMs]).toEqual([await runId(), undefined, undefined]);
  });

  test("forgets a lease length that no client has reported for two periods", async () => {
    await ask(10_000);
    await server.command("HSET", "hf:lineage", "longestMs", 900_000, "periodMs", 1);
    expect(await ask(10_000), "it counts for the next period").toEqual([0, 900_000]);
    expect(await marker()).toMatchObject({ longestMs: "10000", beforeMs: "900000" });
    await server.command("HSET", "hf:lineage", "periodMs", 1);
    expect(await ask(5_000)).toEqual([0, 10_000]);
  });

  test("makes a quorum server wait for the longest lease that the others know, once enough have replied", async () => {
    const askVoter = async (leaseMs: number, heard: string): Promise<unknown[]> =>
      numbersOf(
        (await server.command(
          ...["EVAL", serverLineage.source, 1, "hf:lineage", leaseMs, 1, "voter", "", heard],
        )) as unknown[],
      );
    await server.command("HSET", "hf:lineage", "run", "another", "longestMs", 1_000, "heard", "another");
    const alone = (await askVoter(1_000, "")) as number[];
    expect(alone).toEqual([3, 1_000, expect.any(Number)]);
    expect(alone[2]).toBeGreaterThan(3_590_000);
    expect(await askVoter(1_000, "another"), "that was of its last run").toEqual([3, 1_000, expect.any(Number)]);
    expect(await askVoter(60_000, await runId())).toMatchObject([1, 60_000, expect.any(Number)]);
    const waits = (await askVoter(1_000, "")) as number[];
    expect(waits, "for everybody").toEqual([1, 60_000, expect.any(Number)]);
    expect(waits[2]).toBeLessThanOrEqual(60_000);
    expect(await marker()).toMatchObject({ run: "another", pending: await runId(), heard: await runId() });
    await server.command("HSET", "hf:lineage", "sinceMs", 1);
    expect(await askVoter(1_000, "")).toEqual([0, 60_000]);
  });

  test("waits on a new server without a marker in strict mode, but not in auto mode", async () => {
    expect(await ask(3_600_000, 1)).toMatchObject([1, 3_600_000, expect.any(Number)]);
    await server.command("DEL", "hf:lineage");
    expect(await ask(3_600_000, 0)).toEqual([0, 3_600_000]);
  });

  test("makes a new server wait until at least a full lease after its start", async () => {
    const leaseMs = 60_000;
    // Starts so that a new second of the clock begins soon after the server is up, long before the server has been up
    // for a second.
    await new Promise((resume) => setTimeout(resume, (1_400 - (Date.now() % 1_000)) % 1_000));
    const startedAtMs = performance.now();
    const fresh = await startRedis();
    try {
      while (performance.now() - startedAtMs < 1_300) {
        await fresh.command("FLUSHALL");
        const upMs = performance.now() - startedAtMs;
        const [isQuiet, , restMs] = (await fresh.command(
          ...["EVAL", serverLineage.source, 1, "hf:lineage", leaseMs, 1, "server", ""],
        )) as [number, number, number];
        expect(isQuiet).toBe(1);
        expect(restMs).toBeGreaterThanOrEqual(leaseMs - (performance.now() - startedAtMs));
        expect(restMs, "and is not much longer").toBeLessThanOrEqual(leaseMs - Math.max(0, upMs - 2_000));
        await new Promise((resume) => setTimeout(resume, 20));
      }
    } finally {
      await fresh.stop();
    }
  });

  test("trusts a caller that vouches for the server's current run", async () => {
    await server.command("HSET", "hf:lineage", "run", "another", "longestMs", 3_600_000);
    expect(await ask(30_000, 0, "shard", "another")).toMatchObject([1, 3_600_000, expect.any(Number)]);
    expect(await ask(30_000, 0, "shard", await runId())).toEqual([0, 3_600_000]);
    expect(await marker()).toMatchObject({ run: await runId() });
  });

  test("treats a server that was demoted and promoted again as a new run", async () => {
    expect(await ask(30_000)).toEqual([0, 30_000]);
    const before = await runId();
    for (let turn = 0; turn < 2; turn += 1) {
      const last = await runId();
      await server.command("REPLICAOF", "127.0.0.1", 1);
      await server.command("REPLICAOF", "NO", "ONE");
      expect(await runId()).not.toBe(last);
      expect(await ask(30_000)).toMatchObject([1, 30_000, expect.any(Number)]);
    }
    expect((await marker()).run).toBe(before);
  });
});
