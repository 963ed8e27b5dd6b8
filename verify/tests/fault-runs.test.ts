import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

import { OperationCount } from "../src/faults/operation-count.js";
import { type CellOrder, Pool } from "../src/faults/pool.js";
import { Progress } from "../src/faults/progress.js";
import { isFailure, summary, totalsOf } from "../src/faults/summary.js";
import type { CellVerdict } from "../src/faults/verdict.js";
import { cellNamed, EXCLUSION, type Fake, KEPT, run } from "./run-of-a-cell.js";

describe("the sum of many runs", () => {
  const verdict = async (fake: Fake): Promise<CellVerdict> => (await run(fake)).verdict;

  it("counts a cell as failed if one of its runs failed", async () => {
    const verdicts = [await verdict({}), await verdict({ proof: null }), await verdict({ cell: "J24/1e/m" })];
    expect(totalsOf(verdicts)).toMatchObject({ passed: 1, failed: 1, runs: 3 });
  });

  it("names each failure, its reason and the command that repeats it, and ends with the count", async () => {
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

  it("does not fail for a peer, unless the peer did nothing at all", async () => {
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

  it("forwards the output of the process of a cell", async () => {
    const verdicts = await pooled(
      "const { seed, cell } = JSON.parse(process.argv[2]); process.send({ type: 'verdict', verdict: { seed, cell } }, () => process.exit(0));",
      10_000,
    );
    expect(new Set(verdicts.map(({ seed }) => seed))).toEqual(new Set([1, 2]));
  });

  it("counts a process that ends without a verdict as void, and shows its last output", async () => {
    const [verdict] = await pooled("throw new Error('out of wits')", 10_000);
    expect(verdict?.outcome).toBe("void");
    expect(verdict?.notes.join()).toContain("out of wits");
  });

  it("kills a process that does not end, with its children", async () => {
    const grandchild = "setInterval(() => {}, 1e6)";
    const verdicts = await pooled(
      `import { spawn } from "node:child_process"; spawn(process.execPath, ["-e", ${JSON.stringify(grandchild)}], { stdio: "inherit" }); setInterval(() => {}, 1e6);`,
      300,
    );
    // The shared pipe closes when the last process has ended, and only then is there a verdict.
    expect(verdicts.map(({ outcome }) => outcome)).toEqual(["void", "void"]);
    expect(verdicts[0]?.notes.join()).toContain("was killed");
  });
});

it("operations are counted while they are written, each once, and an incomplete line only later", () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-count-"));
  const file = join(directory, "c1-1.jsonl");
  const begin = `{"line":"begin","id":1}\n`;
  const count = new OperationCount();
  expect(count.of([file])).toBe(0);
  writeFileSync(file, `${begin}{"line":"end","id":1}\n{"line":"beg`);
  expect(count.of([file])).toBe(1);
  // More than one read returns.
  writeFileSync(file, `in","id":2}\n${begin.repeat(5_000)}`, { flag: "a" });
  expect(count.of([file])).toBe(5_002);
  rmSync(directory, { recursive: true });
  expect(count.of([file])).toBe(5_002);
});

it("the progress line shows the number of cells, operations, faults and violations, and the time left", async () => {
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
