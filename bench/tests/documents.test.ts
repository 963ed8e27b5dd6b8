import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseArguments } from "../src/arguments.js";
import type { CurveConditions, MeasuredCurve } from "../src/curves/report.js";
import { documentOf, writeCurves, writeReport } from "../src/documents/write.js";
import type { Section } from "../src/measurements/entry.js";
import type { Report } from "../src/report.js";

const DOCS = fileURLToPath(new URL("../docs", import.meta.url));

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-bench-docs-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function sections(gapMs: number): Section[] {
  return Array.from({ length: 10 }, (_, i) => ({
    process: i % 2,
    caller: i,
    askedAtMs: 0,
    startedAtMs: i * gapMs,
    endedAtMs: i * gapMs,
  }));
}

const SUMMARY = { median: 1_234, lowest: 1_000, highest: 2_000 };
const REPORT: Report = {
  reached: false,
  machine: { cores: 2, cpu: "some", load: 0, node: "20", redis: "7", ioredis: "6", nodeRedis: "6", glide: "2" },
  contestants: [{ name: "ours", version: "1", client: "ioredis", settings: "its defaults" }],
  repetitions: 5,
  callers: 100,
  waiters: 10_000,
  leases: 100_000,
  leaseMs: 30_000,
  autoPipelining: false,
  comparisons: [
    {
      name: "hot",
      title: "hot key",
      seconds: 1,
      figures: [{ name: "rate", unit: "sections/s", digits: 0, better: "more" }],
      outcomes: [
        { name: "ours", role: "own", summaries: [SUMMARY], sections: sections(1) },
        { name: "theirs", role: "peer", summaries: [], trouble: "exclusion was broken" },
      ],
      targets: [{ what: "hot key", bound: "≥ 2", measured: "1", reached: false }],
    },
  ],
};

describe("the document of the benchmark", () => {
  it("shows a measurement for each library, or why there is none", () => {
    writeReport(folder, REPORT);
    const text = readFileSync(join(folder, "benchmarks.md"), "utf8");
    expect(text).toContain("| ours | 1,234 (1,000 – 2,000) |");
    expect(text).toContain("Without theirs: exclusion was broken.");
    expect(text).toContain("| hot key | 1 | ≥ 2 | missed |");
  });

  it("shows no picture that does not exist", () => {
    writeReport(folder, REPORT);
    const shown = [...readFileSync(join(folder, "benchmarks.md"), "utf8").matchAll(/\]\(benchmarks\/(\S+\.svg)\)/g)];
    expect(shown.map(([, name]) => name)).toEqual(["hot.svg", "hot-timeline.svg"]);
    expect(readdirSync(join(folder, "benchmarks"))).toEqual(expect.arrayContaining(["hot.svg", "hot-timeline.svg"]));
  });

  it("draws a dot for each section that it shows", () => {
    writeReport(folder, REPORT);
    const picture = readFileSync(join(folder, "benchmarks/hot-timeline.svg"), "utf8");
    expect(picture.match(/h2/g)).toHaveLength(10);
  });

  it("depends only on the numbers", () => {
    writeReport(folder, REPORT);
    expect(documentOf(folder)).toBe(readFileSync(join(folder, "benchmarks.md"), "utf8"));
    expect(readFileSync(join(folder, "benchmarks/results.json"), "utf8")).not.toContain('sections":');
  });

  it("shows each curve as a picture, with its text", () => {
    const points = [1, 2].map((x) => ({ x, y: 10 * x, cells: [`${10 * x}`] }));
    const lines = [
      { name: "ours", points },
      { name: "raw", points },
    ];
    const figures = { x: "masters", y: "pairs/s", columns: ["pairs/s"] };
    const curve = { name: "masters", title: "pairs/s, by masters", figures, lines, sentences: ["ours grows."] };
    const { machine, autoPipelining, leaseMs, repetitions } = REPORT;
    const conditions = { machine, autoPipelining, leaseMs, repetitions };
    writeCurves(folder, { curves: [{ ...curve, conditions }] });
    const text = readFileSync(join(folder, "benchmarks.md"), "utf8");
    expect(text).toContain("![pairs/s, by masters](benchmarks/curve-masters.svg)\n\nours grows.");
    expect(text).toContain("| raw | 2 | 20 |");
    const picture = readFileSync(join(folder, "benchmarks/curve-masters.svg"), "utf8");
    expect(picture.match(/<circle/g)).toHaveLength(lines.length * points.length);
    expect(documentOf(folder)).toBe(text);
  });

  it("keeps the curves that were not measured again, and says where each was measured", () => {
    const figures = { x: "leases", y: "%", columns: ["%"] };
    const { machine, autoPipelining, leaseMs, repetitions } = REPORT;
    const here = { machine, autoPipelining, leaseMs, repetitions };
    const there = { ...here, machine: { ...machine, cpu: "another" }, autoPipelining: true };
    const curveOf = (name: string, y: number, conditions: CurveConditions): MeasuredCurve => {
      const lines = [{ name: "ours", points: [{ x: 1, y, cells: [`${y}`] }] }];
      return { name, title: `of ${name}`, figures, lines, sentences: [], conditions };
    };
    writeCurves(folder, { curves: [curveOf("masters", 1, here), curveOf("leases", 2, here)] });
    writeCurves(folder, { curves: [curveOf("leases", 3, there), curveOf("waiters", 4, there)] });
    const text = readFileSync(join(folder, "benchmarks.md"), "utf8");
    const [, masters = "", leases = "", waiters = ""] = text.split("### Of ");
    expect(masters).toContain("| ours | 1 | 1 |");
    expect(masters).not.toContain("another");
    expect(leases).toContain("| ours | 1 | 3 |");
    expect(leases).toContain("cores, another");
    expect(leases).toContain("auto-pipelining on");
    expect(waiters).toContain("| ours | 1 | 4 |");
  });

  it("matches its numbers in this repository", () => {
    const file = join(DOCS, "benchmarks.md");
    // Before the first results, neither exists.
    expect(existsSync(file)).toBe(existsSync(join(DOCS, "benchmarks")));
    if (existsSync(file)) expect(readFileSync(file, "utf8")).toBe(documentOf(DOCS));
  });

  it("is not written from incomplete results", () => {
    expect(() => parseArguments(["--write-docs", "--only", "hot"])).toThrow("leave out --only");
    expect(() => parseArguments(["--write-docs", "--profile", "--only", "gap"])).toThrow("leave out --only");
    expect(parseArguments(["--write-docs", "--curves", "--only", "masters"]).writeDocs).toBe(true);
    expect(parseArguments(["--write-docs"]).writeDocs).toBe(true);
  });
});
