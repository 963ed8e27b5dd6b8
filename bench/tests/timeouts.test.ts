import { expect, it } from "vitest";
// The built program, because each run is a process.
import { startServer } from "../dist/server.js";
import { measureTimeouts } from "../dist/timeouts/measure.js";
import { parseArguments } from "../src/arguments.js";
import { timeoutsText } from "../src/timeouts/report.js";

it("measures callers of each kind that time out together, and each of them learns who holds the lock", async () => {
  const server = await startServer();
  try {
    const connection = { port: server.port, autoPipelining: false, leaseMs: 30_000 };
    const conditions = { server, servers: [], connection, repetitions: 1, callers: 1, leases: 1, waiters: 1 };
    const lines = await measureTimeouts(conditions, 50);
    expect(lines.map(({ kind }) => kind)).toEqual(["mutex", "mutex, strict", "semaphore"]);
    for (const { told, stallMs, scriptCalls } of lines) {
      expect(told).toBe(50);
      expect(stallMs).toBeGreaterThan(0);
      expect(scriptCalls).toBeGreaterThan(1);
    }
    expect(timeoutsText(lines)).toContain("mutex, strict");
  } finally {
    await server.stop();
  }
});

it("says which targets were missed", () => {
  const line = { callers: 5_000, longestStallMs: 4_500, scriptCalls: 10_002, lastMs: 4_600, told: 5_000 };
  const text = timeoutsText([
    { ...line, kind: "mutex", stallMs: 4_200, leasesLost: 0 },
    { ...line, kind: "semaphore", stallMs: 50, leasesLost: 1 },
    { ...line, kind: "mutex, strict", stallMs: 50, leasesLost: 0 },
  ]);
  expect(text.match(/MISSED {2}.*/g)).toEqual([
    expect.stringContaining("mutex:"),
    expect.stringContaining("semaphore:"),
  ]);
  expect(text).toMatch(/reached {2}mutex, strict:/);
});

it("runs as a separate command", () => {
  expect(parseArguments(["--timeouts"])).toMatchObject({ timeouts: true, measurements: [], curves: [], profiles: [] });
  expect(() => parseArguments(["--timeouts", "--moments"])).toThrow("--moments and --timeouts");
  expect(() => parseArguments(["--timeouts", "--only", "hot"])).toThrow("leave out --only and --adapters");
  expect(() => parseArguments(["--timeouts", "--write-docs"])).toThrow("writes no document");
});
