/** The table of targets of several runs on several servers. */
import { expect, it } from "vitest";
import { goalsTable, withGoals } from "../src/goals.js";
import type { Target } from "../src/measurements/entry.js";

const run = (
  server: string,
  bound: string,
  measured: string,
  reached: boolean | null,
): { server: string; targets: Target[] } => ({
  server,
  targets: [{ what: "lone pair", bound, measured, reached }],
});

it("a target is reached on a server if it is in every run there, and open if a run could not tell", () => {
  const runs = [
    run("Redis 7.0", "≤ 1.35 × raw", "1.3 × raw", true),
    run("Redis 7.0", "≤ 1.35 × raw", "1.4 × raw", false),
    run("Valkey 9.1", "≤ 1.25 × raw", "1.2 × raw", true),
    run("Valkey 9.1", "≤ 1.25 × raw", "1.1 × raw", true),
    run("Redis 8.2", "≤ 1.35 × raw", "not measured", null),
  ];
  const [header, , line, ...more] = goalsTable(runs).split("\n");
  expect(header).toBe("| row | target | Redis 7.0, 2 runs | Valkey 9.1, 2 runs | Redis 8.2, 1 run |");
  expect(line).toBe(
    "| lone pair | ≤ 1.35 × raw (Redis 7.0), ≤ 1.25 × raw (Valkey 9.1), ≤ 1.35 × raw (Redis 8.2) | 1.3, 1.4 × raw: missed | 1.2, 1.1 × raw: reached | not measured: open |",
  );
  expect(more).toEqual([]);
});

it("results with different units are shown with each unit, and equal results once", () => {
  const cells = (...measured: string[]): string | undefined =>
    goalsTable(measured.map((one) => run("Redis", "≥ 20 ×", one, true))).split("\n")[2];
  expect(cells("20.3 × verrou", "21.1 × rueidislock")).toContain("| 20.3 × verrou, 21.1 × rueidislock: reached |");
  expect(cells("77.8 kB", "77.8 kB")).toContain("| 77.8 kB: reached |");
});

it("the table is placed between its markers, and the rest of the page stays", () => {
  const page = "before\n<!-- goals: begin -->\nold\n<!-- goals: end -->\nafter\n";
  const filled = withGoals(page, "| new |");
  expect(filled).toBe("before\n<!-- goals: begin -->\n\n| new |\n\n<!-- goals: end -->\nafter\n");
  expect(withGoals(filled, "| new |")).toBe(filled);
  expect(() => withGoals("no marks", "")).toThrow(RangeError);
});
