import { describe, expect, it } from "vitest";
import { parseArguments } from "../src/arguments.js";
import { cellsOf, profileText, tableOf } from "../src/profiles/report.js";
import { WORKLOADS, type Workload } from "../src/profiles/workloads.js";
import { profiled, summed } from "../src/worker/profile.js";

const NOTHING = { library: 0, client: 0, node: 0, loop: 0, collector: 0, bench: 0 };

function node(id: number, functionName: string, url = ""): Parameters<typeof summed>[0]["nodes"][number] {
  return { id, callFrame: { functionName, url, scriptId: "0", lineNumber: 0, columnNumber: 0 } };
}

describe("a profile", () => {
  it("attributes time to the code that ran, and leaves out idle time", () => {
    const nodes = [
      node(1, "(idle)"),
      node(2, "(program)"),
      node(3, "(garbage collector)"),
      node(4, "acquire", "file:///x/packages/holdfast/dist/core/lock.js"),
      node(5, "sendCommand", "file:///x/node_modules/ioredis/built/Redis.js"),
      node(6, "writev", "node:net"),
      node(7, "writeUtf8String"),
      node(8, "caller", "file:///x/bench/dist/worker/pairs.js"),
      node(9, "lock", "file:///x/node_modules/redlock/index.js"),
    ];
    const samples = [1, 2, 3, 4, 4, 5, 6, 7, 8, 9];
    const timeDeltas = [900, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    expect(summed({ nodes, samples, timeDeltas, startTime: 0, endTime: 1 })).toEqual({
      us: { loop: 1, collector: 2, library: 7 + 9, client: 5, node: 6 + 7, bench: 8 },
      heaviest: [
        { name: "lock index.js", us: 9 },
        { name: "acquire lock.js", us: 7 },
      ],
    });
  });

  it("is taken of the real program", async () => {
    const { result, profile } = await profiled(async () => {
      const untilMs = performance.now() + 50;
      let count = 0;
      while (performance.now() < untilMs) count += 1;
      return count;
    });
    expect(result).toBeGreaterThan(0);
    expect(Object.values(profile.us).reduce((sum, us) => sum + us, 0)).toBeGreaterThan(10_000);
  });
});

describe("a table of profiles", () => {
  const [workload] = WORKLOADS as readonly [Workload];
  const spent = (library: number): Parameters<typeof tableOf>[1][number]["spent"] => ({
    operations: 10,
    profiles: [{ us: { ...NOTHING, library, node: 100 }, heaviest: [{ name: "acquire lock.js", us: library }] }],
    serverUs: 50,
  });
  const table = tableOf(workload, [
    { name: "raw", spent: spent(50) },
    { name: "holdfast", spent: spent(250) },
  ]);

  it("counts per operation, relative to the first line", () => {
    expect(table.lines.map(cellsOf)).toEqual([
      ["5.0", "0.0", "10.0", "0.0", "0.0", "0.0", "15.0", "5.0", "1.00 ×"],
      ["25.0", "0.0", "10.0", "0.0", "0.0", "0.0", "35.0", "5.0", "2.00 ×"],
    ]);
    expect(profileText(table)).toContain("Holdfast's heaviest functions: acquire lock.js 25.0.");
  });

  it("lists no functions if none was profiled", () => {
    const onServer = tableOf(workload, [{ name: "raw", spent: { operations: 10, profiles: [], serverUs: 50 } }]);
    expect(onServer.lines.map(cellsOf)).toEqual([["0.0", "0.0", "0.0", "0.0", "0.0", "0.0", "0.0", "5.0", "1.00 ×"]]);
    expect(profileText(onServer)).not.toContain("heaviest");
  });
});

it("runs as a separate command, for all workloads or some", () => {
  expect(parseArguments(["--profile"])).toMatchObject({ profiles: WORKLOADS, measurements: [], curves: [] });
  expect(parseArguments(["--profile", "--only", "gap"]).profiles.map(({ name }) => name)).toEqual(["gap"]);
  expect(() => parseArguments(["--profile", "--curves"])).toThrow("--curves and --profile");
});
