import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
// The built program, because the processes of a crowd run it.
import { runCrowd, sectionsDuringLongestWait } from "../dist/measurements/crowds.js";
import type { Conditions } from "../dist/measurements/entry.js";
import { type Server, startServer } from "../dist/server.js";

const CROWD = { processes: 2, callers: 4, warmUpMs: 50 };

let server: Server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => server.stop());

function conditions(): Conditions {
  const connection = { port: server.port, autoPipelining: false, leaseMs: 30_000 };
  return { server, servers: [], connection, seconds: 1.5, repetitions: 1, callers: 4, leases: 1, waiters: 1 };
}

describe("a crowd", () => {
  it("records every section, by process and caller", async () => {
    const { sections, shares, fromMs, untilMs } = await runCrowd(
      { ...CROWD, name: "holdfast", sectionMs: 0 },
      conditions(),
    );
    expect(sections.length).toBeGreaterThan(0);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(sections.length);
    expect(sections.every(({ startedAtMs }) => startedAtMs >= fromMs && startedAtMs < untilMs)).toBe(true);
  });

  it("is refused when a lock is granted twice", async () => {
    let isOver = false;
    const takeAway = async (): Promise<void> => {
      while (!isOver) {
        await server.control.del("raw:{hot}");
        await sleep(1);
      }
    };
    const taking = takeAway();
    try {
      const run = runCrowd({ ...CROWD, name: "raw", sectionMs: 5 }, conditions());
      await expect(run).rejects.toThrow("exclusion was broken");
    } finally {
      isOver = true;
      await taking;
    }
  });

  it("counts the sections that began during the longest wait", () => {
    // Caller A asks at 0 and is served at 5, after the sections of 1, 2 and 4.
    const all = [
      { askedAtMs: 0, startedAtMs: 1 },
      { askedAtMs: 1, startedAtMs: 2 },
      { askedAtMs: 2, startedAtMs: 4 },
      { askedAtMs: 0, startedAtMs: 5 },
    ];
    expect(sectionsDuringLongestWait(all, all, 10, [])).toBe(3);
    expect(sectionsDuringLongestWait(all, all.slice(0, 3), 10, [])).toBe(1);
    // A caller that still waits at the end also counts.
    expect(sectionsDuringLongestWait(all, all, 10, [0.5])).toBe(4);
  });
});
