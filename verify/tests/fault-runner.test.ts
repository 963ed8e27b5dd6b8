import { describe, expect, it } from "vitest";
import { isPromised } from "../src/faults/outcome.js";
import type { HistoryRecord } from "../src/history/records.js";
import { operations } from "./histories.js";
import { BROKEN, cellNamed, EXCLUSION, type Fake, run } from "./run-of-a-cell.js";

describe("a run of a cell", () => {
  it("strikes until its time is up, and is ok if no promised property was violated", async () => {
    const { verdict, strikes } = await run({});
    expect(verdict).toMatchObject({ outcome: "ok", faults: strikes });
    expect(strikes).toBeGreaterThan(3);
  });

  it("is void if no fault struck", async () => {
    expect((await run({ proof: null })).verdict.outcome).toBe("void");
    expect((await run({ injection: { strike: async () => {} } })).verdict.outcome).toBe("void");
  });

  it("is void if the history decides no relevant property", async () => {
    const judgement = { checked: { S2: 0, L4: 12 } };
    expect((await run({ judgement })).verdict).toMatchObject({ outcome: "void" });
    expect((await run({ judgement, cell: BROKEN })).verdict.outcome).toBe("void");
  });

  it("is void if a fault cannot be caused, and leaves nothing running", async () => {
    const strike = (): Promise<void> => Promise.reject(new Error("no such process"));
    const { verdict, isStopped } = await run({ injection: { strike } });
    expect(verdict).toMatchObject({ outcome: "void" });
    expect(verdict.notes.join()).toContain("no such process");
    expect(isStopped).toBe(true);
  });

  it("reports a violation even if the run failed afterward", async () => {
    const strike = (): Promise<void> => Promise.reject(new Error("no such process"));
    const { verdict } = await run({ injection: { strike }, judgement: { breaches: [EXCLUSION] } });
    expect(verdict.outcome).toBe("violation");
  });

  it("is violated if a lock is stuck at the end, whatever else the cell allows", async () => {
    const records = operations(["A acquire 0-2 ok", "A release 3-4 ok"]);
    const client = { pid: 1, name: "c1", take: async () => undefined };
    for (const cell of ["J10/1n/w", "J24/1e/m"]) {
      const { verdict } = await run({ cell, records, client });
      expect(verdict).toMatchObject({ outcome: "violation", checked: { L2: 1 } });
      expect(verdict.breaches.map(({ property }) => property)).toEqual(["L2"]);
    }
    expect((await run({ cell: "J36g/1n/m", client })).verdict.outcome).toBe("ok");
  });

  it("is unknown if the search did not finish", async () => {
    expect((await run({ judgement: { unknown: 1 } })).verdict.outcome).toBe("unknown");
  });

  it("is not run if the machine cannot cause the fault, and reports why", async () => {
    const { verdict, strikes } = await run({ injection: { unavailable: async () => "needs root" } });
    expect(verdict).toMatchObject({ outcome: "unavailable", notes: ["needs root"] });
    expect(strikes).toBe(0);
  });
});

describe("a control", () => {
  it("is ok if a property without a promise was violated, and ends after three strikes", async () => {
    const { verdict, strikes } = await run({ cell: BROKEN, judgement: { breaches: [EXCLUSION] } });
    expect(verdict.outcome).toBe("ok");
    expect(strikes).toBe(3);
  });

  it("is toothless if nothing was violated, or only something else", async () => {
    expect((await run({ cell: BROKEN, judgement: { checked: { X1: 3 } } })).verdict.outcome).toBe("toothless");
    const breaches = [{ ...EXCLUSION, property: "S3" }];
    expect((await run({ cell: BROKEN, judgement: { checked: { X1: 3 }, breaches } })).verdict.outcome).toBe(
      "toothless",
    );
  });

  it.each([
    ["J38-plain/1n/t", "F1", "S2"],
    ["J25/1n/r", "S2", "S3"],
  ])("of %s wants %s, and not %s", async (cell, wanted, other) => {
    expect((await run(breaching(cell, wanted))).verdict.outcome).toBe("ok");
    expect((await run(breaching(cell, other))).verdict.outcome).toBe("toothless");
  });

  it("of effects still judges what leases promise", async () => {
    expect((await run(breaching("J01-unfenced/1n/m", "E1"))).verdict.outcome).toBe("ok");
    expect((await run(breaching("J01-unfenced/1n/m", "S2", "E1"))).verdict.outcome).toBe("violation");
  });
});

/** A run in which these properties are violated. */
function breaching(cell: string, ...properties: readonly string[]): Fake {
  return { cell, judgement: { breaches: properties.map((property) => ({ ...EXCLUSION, property })) } };
}

describe("what no fault excuses", () => {
  const CELLS_WITHOUT_EXCLUSION = ["J25/1n/r", "J24/1e/m", "J38-seeded/1n/t", "J38-plain/1n/t"];

  it.each([...CELLS_WITHOUT_EXCLUSION, "J01-unfenced/1n/m", "J36g/1n/m"])("is a violation in %s", async (cell) => {
    for (const property of ["S4", "S5", "F3", "L1", "L2", "L3", "L4", "L7"])
      expect((await run(breaching(cell, "S2", property))).verdict.outcome, property).toBe("violation");
  });

  it.each(CELLS_WITHOUT_EXCLUSION)("is not exclusion in %s", async (cell) => {
    for (const property of ["S1", "S2", "S3", "X1", "X2", "X3"])
      expect((await run(breaching(cell, property))).verdict.outcome, property).not.toBe("violation");
  });

  it("is the order of tokens if the server lost its counters but its clock continued", async () => {
    const outcomes = async (...cells: string[]): Promise<string[]> => {
      const verdicts = await Promise.all(cells.map((cell) => run(breaching(cell, "S2", "F2"))));
      return verdicts.map(({ verdict }) => verdict.outcome);
    };
    expect(await outcomes("J25/1n/r", "J26/1n/w", "J29/1n/s", "J24/1e/m")).toEqual(Array(4).fill("violation"));
    expect(await outcomes("J37/1a/w", "J36/1n/k")).not.toContain("violation");
  });

  it("is a name for which the search did not finish", async () => {
    for (const cell of ["J25/1n/r", "J24/1e/m", "J38-seeded/1n/t", "J36g/1n/m"]) {
      const breaches = cell === "J25/1n/r" ? [EXCLUSION] : [];
      expect((await run({ cell, judgement: { breaches } })).verdict.outcome, cell).toBe("ok");
      expect((await run({ cell, judgement: { breaches, unknown: 1 } })).verdict.outcome, cell).toBe("unknown");
    }
  });

  it("is not required of a peer, which promises none of it", async () => {
    expect(isPromised(cellNamed("J25/1n/r"), { property: "S4" }, "redlock")).toBe(false);
    expect(isPromised(cellNamed("J10/1n/w"), { property: "S4" }, "redlock")).toBe(true);
  });
});

describe("other cells", () => {
  it("without a promise are reported, whatever happened", async () => {
    const judgement = { breaches: [EXCLUSION] };
    expect((await run({ cell: "J24/1e/m", judgement })).verdict.outcome).toBe("ok");
    expect((await run({ cell: "J24/1e/m", judgement, proof: null })).verdict.outcome).toBe("void");
  });

  it("that must be refused are violated by a grant", async () => {
    const grant: HistoryRecord = {
      type: "operation",
      id: 1,
      process: "c1",
      incarnation: 0,
      lockName: "a",
      kind: "mutex",
      verb: "acquire",
      args: {},
      callMs: 0,
      returnMs: 1,
      outcome: "ok",
      owner: "o",
      leaseId: 1,
      token: 1,
      validUntilMs: 100,
    };
    expect((await run({ cell: "J36g/1n/m" })).verdict.outcome).toBe("ok");
    expect((await run({ cell: "J36g/1n/m", records: [grant] })).verdict.outcome).toBe("violation");
  });
});
