/** Several servers side by side: which servers a name means, and the text that compares them. */
import { expect, it } from "vitest";
import { serversNamed } from "../../scripts/bench-servers.mjs";
import type { Report } from "../src/report.js";
import { sideBySide } from "../src/side-by-side.js";

it("a family stands for its newest server, and each server is measured once", () => {
  const [newest = "", ...others] = serversNamed("valkey");
  expect(newest).toMatch(/^valkey-\d/);
  expect(others).toEqual([]);
  expect(serversNamed(`redis-7.0,valkey,${newest}`)).toEqual(["redis-7.0", newest]);
});

it("an unknown server is refused with the names of all", () => {
  for (const list of ["", "keydb", "valkey-1", "node-22"]) {
    expect(() => serversNamed(list)).toThrow(/^--server must be one or more of redis-6\.2, .*valkey-.*; got "/);
  }
});

it("a table has a column for each server, with the ratio to the raw lock on the same server", () => {
  const on = (server: "Valkey" | undefined, redis: string, median: number, ratio?: number): Report => ({
    reached: false,
    machine: {
      ...{ cores: 2, cpu: "some", load: 0, node: "20", redis, ioredis: "6", nodeRedis: "6", glide: "2" },
      ...(server && { server }),
    },
    contestants: [],
    ...{ repetitions: 5, callers: 100, waiters: 100, leases: 100, leaseMs: 30_000, autoPipelining: false },
    comparisons: [
      {
        name: "uncontended",
        title: "one at a time",
        seconds: 1,
        figures: [{ name: "p50", unit: "µs", digits: 1, better: "less" }],
        outcomes: [
          { name: "ours", role: "own", summaries: [{ median, lowest: 1, highest: 1, ...(ratio && { ratio }) }] },
          { name: "theirs", role: "peer", summaries: [], trouble: "not run" },
        ],
        targets: [{ what: "p50", bound: "≤ 2", measured: "1", reached: median < 100 }],
      },
    ],
  });
  expect(sideBySide([on(undefined, "7.0.15", 120, 1.5), on("Valkey", "9.1.2", 80)]).split("\n")).toEqual([
    "",
    "one at a time",
    "  p50, µs    Redis 7.0.15  Valkey 9.1.2",
    "  ours     120.0 (1.50 ×)          80.0",
    "  theirs                –             –",
    "",
    "Redis 7.0.15: 0 of 1 targets reached",
    "Valkey 9.1.2: 1 of 1 targets reached",
  ]);
});
