import { describe, expect, it } from "vitest";

import { loadBuild } from "../src/faults/liveness/build.js";
import { runLiveness } from "../src/faults/liveness/run.js";
import { LIVENESS_CELLS } from "../src/faults/matrix.js";

describe("a liveness cell on a real server", () => {
  it.each(["redlock", "holdfast"])("measures how long %s waits for a host that vanished", async (subject) => {
    const cell = LIVENESS_CELLS.find(({ id }) => id === "L02/1n/m");
    if (cell === undefined) throw new Error("there is no such cell");
    const { verdict, records } = await runLiveness({ cell, seed: 1, subject, lastsMs: 1_000 });
    expect(verdict.notes.join("\n")).toMatch(/the next live waiter was granted after [\d.]+ s \(target <= 5 s\)/);
    expect(verdict.notes.join("\n")).toContain("struck: ");
    // The cell itself judges how long it took, and needs an idle machine for that.
    expect(["ok", "violation"]).toContain(verdict.outcome);
    expect(verdict.checked).toMatchObject({ L8: 1 });
    expect(verdict.checked.S2).toBeGreaterThan(0);
    expect(records.some(({ type }) => type === "operation")).toBe(true);
  });

  it("loads a stored build beside the present one", async () => {
    const [kept, present] = await Promise.all([loadBuild("holdfast@protocol-0"), loadBuild("holdfast")]);
    expect(kept.createHoldfast).toBeTypeOf("function");
    expect(kept.createHoldfast).not.toBe(present.createHoldfast);
  });
});
