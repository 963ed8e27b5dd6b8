import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { openClients } from "../src/faults/clients.js";
import { judge } from "../src/faults/judge.js";
import type { Judgement } from "../src/faults/parts.js";
import type { Topology } from "../src/faults/stage.js";
import { startQuorum } from "../src/faults/topology/quorum.js";
import { type History, historyOf } from "../src/history/index.js";
import { Random } from "../src/simulation/random.js";
import { cellNamed } from "./run-of-a-cell.js";

const CELL = cellNamed("J18/Q3/m");
/** A timeout for clients that never end; it does not measure speed. */
const ENOUGH_MS = 15_000;

let topology: Topology;
beforeAll(async () => {
  topology = await startQuorum(3, { durability: "1n" });
});
afterAll(() => topology.stop());

/** Three processes contend for two locks on three servers, until the history contains the expected records. */
async function play(
  mutations: readonly string[],
  shows: (history: History) => boolean,
): Promise<{ readonly judgement: Judgement; readonly history: History }> {
  for (const server of topology.servers) await server.command("FLUSHALL");
  const clients = await openClients({
    count: 3,
    subject: "holdfast",
    letter: "m",
    port: topology.port,
    reachOf: (index) => topology.reachOf?.(index) ?? { by: "port" },
    random: new Random(1),
    mutations,
  });
  try {
    const work = { names: 2, sessions: 2, leaseMs: 3_000, holdMs: 60, waitMs: 6_000, effects: "none" } as const;
    await Promise.all(clients.all.map((client) => client.work(work)));
    const endMs = performance.now() + ENOUGH_MS;
    while (!shows(historyOf(clients.records())) && performance.now() < endMs)
      await new Promise((resolve) => setTimeout(resolve, 50));
    await Promise.all(clients.all.map((client) => client.rest()));
    await clients.close();
    await clients.stop();
    const history = historyOf(clients.records());
    return { history, judgement: judge(CELL, history, { subject: "holdfast", commandTimeoutMs: 500 }) };
  } finally {
    await clients.stop();
  }
}

function grants({ operations }: History): number {
  return operations.filter(({ verb, outcome }) => verb === "acquire" && outcome === "ok").length;
}

describe("client processes on a quorum", () => {
  test("hold one after the other, by replies of a majority and rising tokens", async () => {
    const { judgement, history } = await play([], (seen) => grants(seen) >= 40);
    expect(grants(history)).toBeGreaterThanOrEqual(40);
    expect(judgement.breaches.map(({ property, message }) => `${property}: ${message}`)).toEqual([]);
    for (const property of ["S2", "S5", "F1", "F2"]) expect(judgement.checked[property], property).toBeGreaterThan(0);
    const ends = history.operations.filter(({ verb, outcome }) => verb !== "acquire" && outcome === "ok");
    expect(ends.every(({ answeredMs }) => typeof answeredMs === "number")).toBe(true);
  }, 60_000);

  test("are found to hold at the same time if voters grant a lock twice", async () => {
    const { judgement } = await play(["voter-ignores-the-holder"], (seen) => grants(seen) >= 40);
    expect(judgement.breaches.map(({ property }) => property)).toContain("S2");
  }, 60_000);
});
