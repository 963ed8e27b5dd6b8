import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { BESIDE, CELLS, LIVENESS_CELLS } from "../src/faults/matrix.js";
import type { RunFacts } from "../src/faults/report/data.js";
import { html, image } from "../src/faults/report/html.js";
import { page } from "../src/faults/report/page.js";
import { readResults } from "../src/faults/report/results.js";
import { writeReport } from "../src/faults/report/write.js";
import type { CellVerdict } from "../src/faults/verdict.js";
import { historyOf } from "../src/history/index.js";
import { picture } from "../src/picture/index.js";
import { operations } from "./histories.js";

const HOSTILE = `<script>alert("x")</script> & 'more'`;
const FACTS: RunFacts = {
  seed: 7,
  lastsMs: 8_000,
  jobs: 2,
  tookMs: 90_000,
  subjects: [
    { name: "holdfast", version: "0.1.0", settings: "as it is", letters: ["m"] },
    { name: "redlock", version: "5.0.0", settings: "one server, retryCount 0", letters: ["m"] },
  ],
};

function verdict(id: string, rest: Partial<CellVerdict> = {}): CellVerdict {
  const cell = CELLS.find((each) => each.id === id);
  if (cell === undefined) throw new Error(`no cell ${id}`);
  return {
    cell,
    seed: 7,
    subject: "holdfast",
    outcome: "ok",
    operations: 120,
    faults: 9,
    tookMs: 8_100,
    breaches: [],
    checked: { S2: 41 },
    notes: [],
    ...rest,
  };
}

/** Two simultaneous holders, drawn as a judge draws them. */
function twoHolders(): string {
  const records = operations(["A acquire 0-2 ok valid=100", "B acquire 10-12 ok valid=100"]);
  const violation = { message: "two hold it", records };
  return picture(historyOf(records), { title: HOSTILE, violation });
}

function pageOf(verdicts: readonly CellVerdict[], parts: Parameters<typeof page>[0]["parts"] = []): string {
  return page({ facts: FACTS, verdicts, parts, versions: { redis: "7.0.15" }, writtenAt: "2026-01-01T00:00:00.000Z" });
}

/** Tags that are not closed or not opened. It does not look into comments or scripts. */
function unbalanced(text: string): string[] {
  const open: string[] = [];
  const wrong: string[] = [];
  for (const [, close, name = ""] of text.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*>/g)) {
    if (/^(?:meta|img|br)$/.test(name)) continue;
    if (close === "") open.push(name);
    else if (open.at(-1) === name) open.pop();
    else wrong.push(name);
  }
  return [...wrong, ...open];
}

describe("the report", () => {
  it("shows a violation with its text, its picture and the command that repeats it", () => {
    const svg = twoHolders();
    const breaches = [{ property: "S2", lockName: "orders", message: "two hold it", picture: svg }];
    const text = pageOf([verdict("J10/1n/w", { outcome: "violation", breaches })]);
    expect(text).toContain("two hold it");
    expect(text).toContain("VIOLATION of something promised");
    expect(text).toContain("npm run verify:faults -- --cells J10/1n/w --seed 7 --seconds 8");
    const [, data = ""] = /<img src="data:image\/svg\+xml;base64,([^"]+)"/.exec(text) ?? [];
    expect(Buffer.from(data, "base64").toString("utf8")).toBe(svg);
  });

  it("escapes all output of a run", () => {
    const breaches = [{ property: "S2", lockName: HOSTILE, message: HOSTILE, picture: twoHolders() }];
    const parts = [
      {
        part: "x",
        title: HOSTILE,
        passed: 1,
        failed: 0,
        tookMs: 1,
        facts: { [HOSTILE]: HOSTILE },
        columns: [HOSTILE],
        rows: [[HOSTILE]],
      },
    ];
    const text = pageOf([verdict("J10/1n/w", { outcome: "violation", breaches, notes: [HOSTILE] })], parts);
    expect(text).not.toContain("<script");
    expect(text).toContain("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;more&#39;");
    expect(unbalanced(text)).toEqual([]);
  });

  it("is self-contained", () => {
    const text = pageOf([verdict("J10/1n/w"), verdict("J29/1n/s")]);
    expect(text).not.toMatch(/(?:src|href)="(?!data:|#)/);
    expect(text).not.toMatch(/https?:|@import|url\(/);
    expect(unbalanced(text)).toEqual([]);
  });

  it("shows every cell of the matrix, and which were not run", () => {
    const text = pageOf([verdict("J10/1n/w"), verdict("J29/1n/s")]);
    expect(text.match(/class="mark unrun" title="not run"/g)).toHaveLength(
      CELLS.length + BESIDE.length + LIVENESS_CELLS.length - 2,
    );
    expect(text).toContain("shown: the violation that had to appear");
  });

  it("links each mark to its section", () => {
    const text = pageOf([
      verdict("J10/1n/w"),
      verdict("J01-unfenced/1n/m"),
      verdict("J01/1n/m", { subject: "redlock" }),
    ]);
    const targets = new Set(Array.from(text.matchAll(/ id="([^"]+)"/g), ([, id]) => id));
    const links = Array.from(text.matchAll(/href="#([^"]+)"/g), ([, id]) => id);
    expect(links.length).toBeGreaterThanOrEqual(3);
    expect(links.filter((id) => !targets.has(id))).toEqual([]);
  });

  it("puts the worst run of a cell first", () => {
    const text = pageOf([verdict("J10/1n/w", { seed: 8 }), verdict("J10/1n/w", { seed: 9, outcome: "void" })]);
    expect(text.indexOf("seed 9:")).toBeLessThan(text.indexOf("seed 8:"));
    expect(text).toContain("2 runs");
  });

  it("shows a peer next to Holdfast, with its version and settings", () => {
    const breaches = [{ property: "S2", lockName: "a", message: "two hold it" }];
    const peer = verdict("J01/1n/m", { subject: "redlock", outcome: "violation", breaches });
    const text = pageOf([verdict("J01/1n/m"), peer]);
    expect(text).toContain("redlock 5.0.0</b>: one server, retryCount 0");
    expect(text).toContain(">S2 × 1</a>");
    // The violations of a peer are shown, but do not count as failures.
    expect(text).toContain("<b>0</b>cells that failed");
  });
});

describe("results of other parts", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-report-"));
  });
  afterEach(() => rmSync(directory, { recursive: true }));
  const put = (file: string, value: unknown): void => writeFileSync(join(directory, file), JSON.stringify(value));

  it("are read from JSON files, and other JSON is skipped", () => {
    put("simulation.json", { part: "simulation", title: "Seeds", passed: 2_000, failed: 0, tookMs: 5 });
    put("list.json", [{ part: "teeth", title: "Teeth", passed: 25, failed: 0, columns: ["id"], rows: [["B01"]] }]);
    put("verdicts.json", { verdicts: [] });
    const results = readResults([directory, join(directory, "none")]);
    expect(results.map(({ part, passed }) => [part, passed])).toEqual([
      ["teeth", 25],
      ["simulation", 2_000],
    ]);
  });

  it("of the simulation are read in their own format", () => {
    const byKind = { mutex: { seeds: 10, grants: 70, failed: 1 } };
    put("simulation.json", {
      seeds: 10,
      grants: 70,
      failed: 1,
      unknown: 0,
      checked: { S2: 70 },
      byKind,
      seedsPerMinute: 60,
    });
    expect(readResults([directory])).toEqual([
      expect.objectContaining({ passed: 9, failed: 1, tookMs: 10_000, rows: [["mutex", "10", "70", "1"]] }),
    ]);
  });

  it("that lack required fields are refused", () => {
    put("simulation.json", { part: "simulation", title: "Seeds", passed: "all" });
    expect(() => readResults([directory])).toThrow("simulation.json");
  });

  it("appear in the report that is written next to them", () => {
    put("simulation.json", { part: "simulation", title: "Simulated seeds", passed: 2_000, failed: 0 });
    const file = writeReport(directory, [verdict("J10/1n/w")], FACTS);
    expect(readFileSync(file, "utf8")).toContain("Simulated seeds");
    expect(JSON.parse(readFileSync(join(directory, "totals.json"), "utf8"))).toMatchObject({ passed: 1, failed: 0 });
  });
});

it("a template escapes values in text and in attributes, and lists markup as it is", () => {
  expect(html`<p title="${HOSTILE}">${[html`<b>1</b>`, html`<b>${"<"}</b>`]}</p>`.text).toBe(
    `<p title="&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;more&#39;"><b>1</b>\n<b>&lt;</b></p>`,
  );
  expect(image("<svg/>", HOSTILE).text).not.toContain("<script");
});
