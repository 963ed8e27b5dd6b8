/** Peers beside Holdfast: which requests faults hit, which cells both run, and what the document shows. */
import { describe, expect, it } from "vitest";
import { isAbout, isOfALock } from "../src/faults/injections/striking.js";
import { CELLS } from "../src/faults/matrix.js";
import { readOptions } from "../src/faults/options.js";
import { type PeerReport, peerDocument } from "../src/faults/report/peer-document.js";
import { peerCells, peerKey, STAND_INS } from "../src/faults/subjects/peers.js";
import type { CellVerdict } from "../src/faults/verdict.js";

describe("a request that a fault hits", () => {
  it("concerns a lock: by name for Holdfast, by its key for a peer", () => {
    expect(isOfALock(["EVALSHA", "mutex/acquire", "1", "hf:mutex:{a}"])).toBe(true);
    expect(isOfALock(["EVALSHA", "mutex/inspect", "1", "hf:mutex:{a}"])).toBe(false);
    expect(isOfALock(["EVALSHA", "client-record/write", "1", "hf:client"])).toBe(false);
    expect(isOfALock(["evalsha", "1a2b3c4d", "1", "a"])).toBe(true);
    expect(isOfALock(["eval", "1a2b3c4d", "1", "a"])).toBe(true);
    expect(isOfALock(["set", "a", "me", "PX", "600", "NX"])).toBe(true);
    expect(isOfALock(["set", "a", "me"])).toBe(false);
    expect(isOfALock(["get", "a"])).toBe(false);
  });

  it("concerns the key of the peer's lock, and no other", () => {
    const keyPrefix = (name: string): string => peerKey("verrou", "m", name);
    const matches = isAbout({ peer: "verrou", keyPrefix }, "J01-1", "acquire");
    expect(matches(["set", "J01-1", "me", "PX", "600", "NX"])).toBe(true);
    expect(matches(["set", "J01-10", "me", "PX", "600", "NX"])).toBe(false);
    const ours = isAbout({ keyPrefix: (name) => `hf:mutex:{${name}}` }, "J01-1", "acquire");
    expect(ours(["EVALSHA", "mutex/acquire", "1", "hf:mutex:{J01-1}"])).toBe(true);
    expect(ours(["EVALSHA", "mutex/extend", "1", "hf:mutex:{J01-1}"])).toBe(false);
  });
});

describe("the same cells", () => {
  it("can be run one by one, even those without a mutex in the matrix", () => {
    expect(new Set(STAND_INS.map(({ letter }) => letter))).toEqual(new Set(["m"]));
    const [standIn] = STAND_INS;
    const id = standIn?.id ?? "";
    expect(CELLS.some((cell) => cell.id === id)).toBe(false);
    expect(readOptions(["--cells", id]).cells).toEqual([standIn]);
    expect(peerCells({ name: "verrou", letters: ["m"] }, readOptions(["--cells", id]).cells)).toEqual([standIn]);
    expect(readOptions([]).cells).toEqual(expect.not.arrayContaining([standIn]));
  });

  it("appear in the document only if they run side by side", () => {
    expect(() => readOptions(["--write-docs"])).toThrow(RangeError);
    expect(readOptions(["--peers"]).subjects).toEqual([
      "holdfast",
      "redlock",
      "redis-semaphore",
      "verrou",
      "simple-redis-mutex",
    ]);
  });
});

describe("the document", () => {
  const cells = new Map([...CELLS, ...STAND_INS].map((cell) => [cell.id, cell]));

  function ran(subject: string, id: string, rest: Partial<CellVerdict> = {}): CellVerdict {
    const cell = cells.get(id);
    if (cell === undefined) throw new RangeError(`no cell ${id}`);
    const numbers = { seed: 1, operations: 9, faults: 2, tookMs: 1 };
    return { cell, subject, outcome: "ok", breaches: [], checked: { S2: 41 }, notes: [], ...numbers, ...rest };
  }

  const overlap = { property: "S2", lockName: "a", message: "two holders" };
  const facts = {
    ...{ seed: 1, lastsMs: 8_000, jobs: 2, tookMs: 1 },
    subjects: [
      { name: "holdfast", version: "0.1.0", settings: "strict", letters: ["m" as const] },
      { name: "verrou", version: "9.8.7", settings: "its defaults", letters: ["m" as const] },
    ],
  };
  const report: PeerReport = {
    facts,
    versions: { node: "v20" },
    verdicts: [
      ran("holdfast", "J01/1n/m"),
      ran("verrou", "J01/1n/m", { outcome: "violation", breaches: [overlap], breached: { S2: 3 } }),
      ran("holdfast", "J03/1n/m"),
      ran("verrou", "J03/1n/m", {
        outcome: "void",
        notes: ["1 of 1 faults did not strike", "Error: at /a/b/c/d.js", "struck 0 times"],
      }),
      ran("verrou", "J37/1n/t", { breaches: [overlap], breached: { S2: 3 } }),
    ],
  };
  const text = peerDocument([report]);

  it("shows versions, settings, and the result of each library in the same cell", () => {
    expect(text).toContain("| verrou | 9.8.7 | m | its defaults |");
    expect(text).toContain("| J01 | holder freezes for 0.5 to 3 leases | 0 | m none | m S2 3/41 |");
  });

  it("separates cells without a promise and void cells, with the reason and without data of this machine", () => {
    expect(text).toContain("1 cell in which no library promises anything: violations in 1.");
    expect(text).toContain("| m none | m void |");
    expect(text).toContain("- verrou J03/1n/m: void, # of # faults did not strike");
    expect(text).not.toContain("/a/b");
  });

  it("names the command that repeats the run", () => {
    expect(text).toContain("--peers --columns 1n --seconds 8 --seed 1 --jobs 2 --write-docs");
  });
});
