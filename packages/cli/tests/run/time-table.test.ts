import { describe, expect, it } from "vitest";
import { defaultKillAfterMs, marginOf, nextCheckMs, reactionTo } from "../../src/child/time-table.js";

const times = { killAfterMs: 5_000, marginMs: 1_000 };
const alive = (validForMs: number) => ({ validForMs, isLost: false });
const lost = { validForMs: 20_000, isLost: true };

describe("the time table of a lease of 30 s", () => {
  it("has k = min(5 s, lease / 4) and m = min(1 s, lease / 20)", () => {
    expect([defaultKillAfterMs(30_000), marginOf(30_000)]).toEqual([5_000, 1_000]);
    expect([defaultKillAfterMs(3_000), marginOf(3_000)]).toEqual([750, 150]);
  });

  it.each<[string, number, number | undefined, string]>([
    ["sends nothing before D-k-m", 6_001, undefined, "none"],
    ["sends TERM at D-k-m", 6_000, undefined, "stop"],
    ["waits between TERM and D-m", 1_001, 4_999, "none"],
    ["sends KILL at D-m", 1_000, 4_900, "kill"],
    ["sends KILL k after TERM, even if a renewal has succeeded since", 29_000, 5_000, "kill"],
    ["and not before", 29_000, 4_999, "none"],
    ["sends KILL immediately if it is too late for TERM", 900, undefined, "kill"],
    ["sends TERM if the first check comes after D", 0, undefined, "stop"],
    ["and KILL a second later", 0, 1_000, "kill"],
    ["and not before", 0, 999, "none"],
  ])("%s", (_, validForMs, stoppedForMs, reaction) => {
    expect(reactionTo(alive(validForMs), stoppedForMs, times)).toBe(reaction);
  });

  it("sends TERM immediately after a loss, and KILL after min(k, 1 s)", () => {
    expect(reactionTo(lost, undefined, times)).toBe("stop");
    expect(reactionTo(lost, 999, times)).toBe("none");
    expect(reactionTo(lost, 1_000, times)).toBe("kill");
    expect(reactionTo(lost, 300, { killAfterMs: 300, marginMs: 1_000 })).toBe("kill");
  });

  it("schedules the next check for when the next action may be due, and not later", () => {
    for (let validForMs = 0; validForMs <= 30_000; validForMs += 500) {
      for (const stoppedForMs of [undefined, 0, 400, 2_000, 4_990]) {
        const before = reactionTo(alive(validForMs), stoppedForMs, times);
        const restMs = nextCheckMs(alive(validForMs), stoppedForMs, times);
        if (before !== "none") continue;
        expect(restMs).toBeGreaterThan(0);
        const later = stoppedForMs === undefined ? undefined : stoppedForMs + restMs;
        expect(reactionTo(alive(Math.max(0, validForMs - restMs)), later, times)).not.toBe("none");
      }
    }
  });
});
