import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

import type { Cell } from "../src/faults/cell.js";
import { CELLS } from "../src/faults/matrix.js";
import { OperationCount } from "../src/faults/operation-count.js";
import type { Judgement, OpenStage, Parts } from "../src/faults/parts.js";
import { type CellOrder, Pool } from "../src/faults/pool.js";
import { Progress } from "../src/faults/progress.js";
import { runCell } from "../src/faults/run.js";
import type { Client, FaultProxy, Injection, Stage } from "../src/faults/stage.js";
import { isFailure, summary, totalsOf } from "../src/faults/summary.js";
import type { CellVerdict } from "../src/faults/verdict.js";
import type { HistoryRecord } from "../src/history/records.js";
import { Random } from "../src/simulation/random.js";

function cellNamed(id: string): Cell {
  const cell = CELLS.find((each) => each.id === id);
  if (cell === undefined) throw new Error(`no cell ${id}`);
  return cell;
}

/** What is false in a run, and what its judge says. */
interface Fake {
  readonly cell?: string;
  readonly proof?: string | null;
  readonly judgement?: Partial<Judgement>;
  readonly injection?: Partial<Injection>;
  readonly records?: readonly HistoryRecord[];
}

interface Watched {
  readonly verdict: CellVerdict;
  readonly strikes: number;
  readonly isStopped: boolean;
}

/** A run without servers: time passes when somebody sleeps. */
async function run({
  cell: id = "J10/1n/w",
  proof = "seen",
  judgement,
  injection,
  records = [],
}: Fake): Promise<Watched> {
  const cell = cellNamed(id);
  const history: HistoryRecord[] = [...records];
  let nowMs = 0;
  let strikes = 0;
  let isStopped = false;
  const client = { rest: async () => {}, work: async () => {}, resume: () => {} } as unknown as Client;
  const stage: Stage = {
    cell,
    random: new Random(1),
    topology: {
      servers: [],
      port: 0,
      proxy: {} as FaultProxy,
      hasClockShim: false,
      hasSyncShim: false,
      stop: async () => {},
    },
    clients: [client],
    leaseMs: 100,
    nowMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
    },
    struck: (fault) => history.push({ type: "fault", ...fault }),
    newName: () => "name",
    keyPrefix: (lockName) => lockName,
    fenceKey: (lockName) => `${lockName}:fence`,
  };
  const open: OpenStage = {
    stage,
    records: () => history,
    counts: () => ({ operations: 0, faults: 0 }),
    record: (record) => history.push(record),
    closeClients: async () => [],
    stop: async () => {
      isStopped = true;
    },
  };
  const parts: Parts = {
    injection: () => ({
      row: cell.row,
      strike: async ({ struck }) => {
        strikes += 1;
        nowMs += 10;
        struck({ id: cell.row, beganMs: nowMs - 10, endedMs: nowMs, target: "server", proof });
      },
      ...injection,
    }),
    open: async () => open,
    judge: () => ({ breaches: [], checked: { S2: 1, X2: 1, F1: 1, E1: 1 }, unknown: 0, notes: [], ...judgement }),
  };
  const { verdict } = await runCell({ cell, seed: 1, subject: "holdfast", lastsMs: 1_000 }, parts);
  return { verdict, strikes, isStopped };
}

const EXCLUSION = { property: "S2", lockName: "a", message: "two hold it" };
const KEPT = "J10/1n/w";
const BROKEN = "J29/1n/s";

describe("a run of a cell", () => {
  it("strikes until its time is over, and is ok when nothing that is promised was violated", async () => {
    const { verdict, strikes } = await run({});
    expect(verdict).toMatchObject({ outcome: "ok", faults: strikes });
    expect(strikes).toBeGreaterThan(3);
  });

  it("is void when no fault struck", async () => {
    expect((await run({ proof: null })).verdict.outcome).toBe("void");
    expect((await run({ injection: { strike: async () => {} } })).verdict.outcome).toBe("void");
  });

  it("is void when the history decides nothing of what matters", async () => {
    const judgement = { checked: { S2: 0, L4: 12 } };
    expect((await run({ judgement })).verdict).toMatchObject({ outcome: "void" });
    expect((await run({ judgement, cell: BROKEN })).verdict.outcome).toBe("void");
  });

  it("is void when a fault cannot be made, and leaves nothing running", async () => {
    const strike = (): Promise<void> => Promise.reject(new Error("no such process"));
    const { verdict, isStopped } = await run({ injection: { strike } });
    expect(verdict).toMatchObject({ outcome: "void" });
    expect(verdict.notes.join()).toContain("no such process");
    expect(isStopped).toBe(true);
  });

  it("says a violation also when the run went wrong afterwards", async () => {
    const strike = (): Promise<void> => Promise.reject(new Error("no such process"));
    const { verdict } = await run({ injection: { strike }, judgement: { breaches: [EXCLUSION] } });
    expect(verdict.outcome).toBe("violation");
  });

  it("is unknown when the search came to no end", async () => {
    expect((await run({ judgement: { unknown: 1 } })).verdict.outcome).toBe("unknown");
  });

  it("is not made where the machine cannot make the fault, and says why", async () => {
    const { verdict, strikes } = await run({ injection: { unavailable: async () => "needs root" } });
    expect(verdict).toMatchObject({ outcome: "unavailable", notes: ["needs root"] });
    expect(strikes).toBe(0);
  });
});

describe("a control", () => {
  it("is ok when what is not promised went wrong, and ends at three strikes", async () => {
    const { verdict, strikes } = await run({ cell: BROKEN, judgement: { breaches: [EXCLUSION] } });
    expect(verdict.outcome).toBe("ok");
    expect(strikes).toBe(3);
  });

  it("is toothless when nothing went wrong, or only something else", async () => {
    expect((await run({ cell: BROKEN, judgement: { checked: { X1: 3 } } })).verdict.outcome).toBe("toothless");
    const breaches = [{ ...EXCLUSION, property: "L4" }];
    expect((await run({ cell: BROKEN, judgement: { checked: { X1: 3 }, breaches } })).verdict.outcome).toBe(
      "toothless",
    );
  });

  it.each([
    ["J38-plain/1n/t", "F1", "S2"],
    ["J01-unfenced/1n/m", "E1", "S2"],
  ])("of %s wants %s, and not %s", async (cell, wanted, other) => {
    const breaching = (property: string): Fake => ({ cell, judgement: { breaches: [{ ...EXCLUSION, property }] } });
    expect((await run(breaching(wanted))).verdict.outcome).toBe("ok");
    expect((await run(breaching(other))).verdict.outcome).toBe("toothless");
  });
});

describe("other cells", () => {
  it("of which nothing is promised are reported, whatever happened", async () => {
    const judgement = { breaches: [EXCLUSION] };
    expect((await run({ cell: "J24/1e/m", judgement })).verdict.outcome).toBe("ok");
    expect((await run({ cell: "J24/1e/m", judgement, proof: null })).verdict.outcome).toBe("void");
  });

  it("that have to be refused are violated by a grant", async () => {
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

describe("the sum of many runs", () => {
  const verdict = async (fake: Fake): Promise<CellVerdict> => (await run(fake)).verdict;

  it("counts a cell as failed when one of its runs was", async () => {
    const verdicts = [await verdict({}), await verdict({ proof: null }), await verdict({ cell: "J24/1e/m" })];
    expect(totalsOf(verdicts)).toMatchObject({ passed: 1, failed: 1, runs: 3 });
  });

  it("names what failed, why, and how to see it again, and ends with the count", async () => {
    const text = summary([await verdict({ judgement: { breaches: [EXCLUSION] } })], 8_000);
    expect(text).toContain("VIOLATION J10/1n/w");
    expect(text).toContain("S2: two hold it");
    expect(text).toContain("npm run verify:faults -- --cells J10/1n/w --seed 1 --seconds 8");
    expect(text.split("\n").at(-1)).toBe("0 passed, 1 failed");
  });

  it("names what this machine cannot run, and counts it as neither", async () => {
    const text = summary([await verdict({ injection: { unavailable: async () => "needs root" } })], 8_000);
    expect(text).toContain("NOT RUN J10/1n/w of holdfast: needs root");
    expect(text.split("\n").at(-1)).toBe("0 passed, 0 failed");
  });

  it("holds nothing against a peer, unless nothing at all was seen of it", async () => {
    const any = await verdict({});
    const peer = (outcome: CellVerdict["outcome"], id: string): CellVerdict => ({
      ...any,
      cell: { ...any.cell, id },
      subject: "redlock",
      outcome,
    });
    const seen = [peer("violation", "a"), peer("toothless", "b"), peer("void", "c"), peer("unknown", "d")];
    expect(seen.some(isFailure)).toBe(false);
    expect(totalsOf(seen)).toMatchObject({ passed: 2, failed: 0, undecided: 2 });
    expect(totalsOf(seen.slice(2))).toMatchObject({ passed: 0, failed: 1, undecided: 2 });
    expect(summary(seen.slice(2), 8_000)).toContain("FAILED redlock: none of its runs showed anything");
  });
});

describe("the pool", () => {
  const directories: string[] = [];
  afterEach(() => {
    for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
  });

  async function pooled(source: string, patienceMs: number): Promise<CellVerdict[]> {
    const directory = mkdtempSync(join(tmpdir(), "holdfast-pool-"));
    directories.push(directory);
    const program = join(directory, "program.mjs");
    writeFileSync(program, source);
    const verdicts: CellVerdict[] = [];
    const order: CellOrder = { cell: cellNamed(KEPT), seed: 1, subject: "holdfast", lastsMs: 1 };
    const orders = [order, { ...order, seed: 2 }];
    const pool = new Pool({ progress: () => {}, done: (verdict) => verdicts.push(verdict) }, program, patienceMs);
    await pool.run(() => orders.shift(), 2);
    return verdicts;
  }

  it("hands on what the process of a cell says", async () => {
    const verdicts = await pooled(
      "const { seed, cell } = JSON.parse(process.argv[2]); process.send({ type: 'verdict', verdict: { seed, cell } }, () => process.exit(0));",
      10_000,
    );
    expect(new Set(verdicts.map(({ seed }) => seed))).toEqual(new Set([1, 2]));
  });

  it("counts a process as void that ends without a verdict, and says what it said last", async () => {
    const [verdict] = await pooled("throw new Error('out of wits')", 10_000);
    expect(verdict?.outcome).toBe("void");
    expect(verdict?.notes.join()).toContain("out of wits");
  });

  it("ends a process that does not come to an end, with what it started", async () => {
    const grandchild = "setInterval(() => {}, 1e6)";
    const verdicts = await pooled(
      `import { spawn } from "node:child_process"; spawn(process.execPath, ["-e", ${JSON.stringify(grandchild)}], { stdio: "inherit" }); setInterval(() => {}, 1e6);`,
      300,
    );
    // The pipe that they share closes with the last of them, and only then is there a verdict.
    expect(verdicts.map(({ outcome }) => outcome)).toEqual(["void", "void"]);
    expect(verdicts[0]?.notes.join()).toContain("was killed");
  });
});

it("operations are counted while they are written, each once, and a line that is not whole later", () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-count-"));
  const file = join(directory, "c1-1.jsonl");
  const begin = `{"line":"begin","id":1}\n`;
  const count = new OperationCount();
  expect(count.of([file])).toBe(0);
  writeFileSync(file, `${begin}{"line":"end","id":1}\n{"line":"beg`);
  expect(count.of([file])).toBe(1);
  // More than is read at once.
  writeFileSync(file, `in","id":2}\n${begin.repeat(5_000)}`, { flag: "a" });
  expect(count.of([file])).toBe(5_002);
  rmSync(directory, { recursive: true });
  expect(count.of([file])).toBe(5_002);
});

it("the progress line says how many cells, operations, faults and violations there were, and what is left", async () => {
  let nowMs = 0;
  const progress = new Progress({ write: () => {} }, () => nowMs, 4, undefined);
  const { verdict } = await run({ judgement: { breaches: [EXCLUSION] } });
  nowMs = 10_000;
  progress.done({ ...verdict, operations: 7, faults: 2 });
  progress.progress({ cell: verdict.cell, subject: "holdfast", seed: 2, lastsMs: 1 }, 30, 3);
  expect(progress.text()).toBe(
    "1 of 4 cells, 37 operations, 5 faults, 1 with violations, 0 void or toothless, 30 s left",
  );
});
