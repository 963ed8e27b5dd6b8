import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import type { Cell, Letter } from "../src/faults/cell.js";
import { type Clients, COMMAND_TIMEOUT_MS, openClients } from "../src/faults/clients.js";
import { judge } from "../src/faults/judge.js";
import { MUTATIONS } from "../src/faults/mutations.js";
import type { Judgement } from "../src/faults/parts.js";
import type { Work } from "../src/faults/stage.js";
import { type History, historyOf } from "../src/history/index.js";
import { isHandedOn } from "../src/history/lease-names.js";
import { Random } from "../src/simulation/random.js";

const WORK: Work = { names: 2, sessions: 3, leaseMs: 600, holdMs: 100, waitMs: 1_000, effects: "none" };
/** A timeout for clients that never end; it does not measure speed. */
const ENOUGH_MS = 15_000;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

/** Works until the history contains the expected records, then stops. */
async function play(
  letter: Letter,
  options: { readonly mutations?: readonly string[]; readonly work?: Partial<Work> },
  disturb: (clients: Clients, work: Work) => Promise<void>,
  shows: (history: History) => boolean,
): Promise<{ readonly judgement: Judgement; readonly history: History; readonly left: readonly string[] }> {
  await server.command("FLUSHALL");
  const { mutations = [] } = options;
  const work = { ...WORK, ...options.work };
  const clients = await openClients({
    count: 2,
    subject: "holdfast",
    letter,
    port: server.port,
    random: new Random(1),
    mutations,
  });
  try {
    await Promise.all(clients.all.map((client) => client.work(work)));
    await disturb(clients, work);
    const endMs = performance.now() + ENOUGH_MS;
    while (!shows(historyOf(clients.records())) && performance.now() < endMs)
      await new Promise((resolve) => setTimeout(resolve, 50));
    await Promise.all(clients.all.map((client) => client.rest()));
    const left = await clients.close();
    await clients.stop();
    const cell: Cell = {
      id: `none/1n/${letter}`,
      row: "none",
      column: "1n",
      letter,
      expectation: "kept",
      judged: "leases",
      isQuick: false,
    };
    const history = historyOf(clients.records());
    return {
      judgement: judge(cell, history, { subject: "holdfast", commandTimeoutMs: COMMAND_TIMEOUT_MS }),
      history,
      left,
    };
  } finally {
    await clients.stop();
  }
}

async function nothing(): Promise<void> {}

function granted({ operations }: History): number {
  return operations.filter(({ verb, outcome }) => verb === "acquire" && outcome === "ok").length;
}

describe("client processes on a real server", () => {
  test("keep their promises when one is killed at work, and leave nothing behind", async () => {
    const { judgement, history, left } = await play(
      "f",
      // A process that freezes for longer than its lease loses its turn. This test cannot distinguish that from being skipped.
      { work: { effects: "fenced", leaseMs: 3_000 } },
      async ({ all: [first] }, work) => {
        await first?.kill();
        await first?.start();
        await first?.work(work);
      },
      (seen) =>
        granted(seen) > 60 && seen.operations.some(({ process, outcome }) => process === "c1#2" && outcome === "ok"),
    );
    expect(judgement.breaches.map(({ property, message }) => `${property}: ${message}`)).toEqual([]);
    expect(judgement.unknown).toBe(0);
    for (const property of ["S1", "S2", "S3", "S4", "S5", "F1", "F2", "F3", "F4", "F5", "E1", "X3", "L3", "L4"])
      expect(judgement.checked[property], property).toBeGreaterThan(0);
    expect(history.faults).toMatchObject([{ id: "J03", target: "c1#1", proof: "exit by SIGKILL" }]);
    expect(left).toEqual([]);
  });

  test.each(["m", "r"] as const)("of letter %s pass leases on among callers that share a claim", async (letter) => {
    const { judgement, history, left } = await play(
      letter,
      { work: { names: 1, sessions: 6 } },
      nothing,
      (seen) => seen.operations.filter(isHandedOn).length > 10,
    );
    expect(judgement.breaches.map(({ property, message }) => `${property}: ${message}`)).toEqual([]);
    expect(judgement.unknown).toBe(0);
    const leases = history.operations.filter(isHandedOn);
    expect(leases.length).toBeGreaterThan(0);
    for (const { owner, token, args } of leases) {
      // The same claim with its next token, and without a separate lease on the server.
      const [claim, turn] = owner.split("/+");
      const first = history.operations.find((other) => other.owner === claim && other.outcome === "ok");
      expect(token).toBe((first?.token ?? 0) + Number(turn));
      expect(args.leaseMs).toBeUndefined();
    }
    expect(left).toEqual([]);
  });

  test("are caught when they take a lock that another client holds", async () => {
    const mutations = ["acquire-ignores-the-holder"];
    const { judgement } = await play("m", { mutations }, nothing, (seen) => granted(seen) > 40);
    const found = judgement.breaches.map(({ property }) => property);
    expect(found).toContain("S1");
    expect(found).toContain("S2");
  });

  test("are caught when they serve the last caller first, and count one by one with that mutation", async () => {
    const mutations = ["newest-waiter-first", "plain-counter"];
    const { judgement, history } = await play("f", { mutations }, nothing, (seen) => granted(seen) > 60);
    expect(judgement.breaches.map(({ property }) => property)).toContain("X3");
    const tokens = history.operations.flatMap(({ token }) => token ?? []);
    expect(Math.max(...tokens)).toBeLessThan(10_000);
    expect(Math.min(...tokens)).toBeGreaterThan(0);
  });

  test("refuse an unknown mutation", async () => {
    expect(MUTATIONS).not.toContain("none");
    await expect(play("m", { mutations: ["none"] }, nothing, () => true)).rejects.toThrow(/there is no mutation none/);
  });
});
