import { describe, expect, it } from "vitest";
import type { LockRow, StoreView, StreamState } from "../../src/api.js";
import { hasAll, livenessOf, merged } from "../../src/ui/known.js";

const UP: StoreView = { state: "up", address: "redis://db", sinceAtMs: 1 };
const DOWN = { state: "down", address: "redis://db", error: "connect ECONNREFUSED" } as StoreView;
const stamp = { v: 1, atMs: 5 } as const;
const row = { id: "mutex:a" } as LockRow;

describe("the data of a page", () => {
  it("is unknown, not empty, until it has been read", () => {
    const loading: StreamState = { ...stamp, store: UP, locks: null, clients: null };
    const known = merged({}, loading, true);
    expect(known).toEqual({ store: UP });
    expect(
      merged(known, { ...stamp, store: UP, locks: { rows: [], isCut: false, unreachable: 0 } }, true).locks?.rows.size,
    ).toBe(0);
  });

  it("stays unchanged while it is read again", () => {
    const before = merged({}, { ...stamp, store: UP, locks: { rows: [row], isCut: false, unreachable: 0 } }, true);
    expect(merged(before, { ...stamp, store: UP, locks: null }, true).locks?.rows.get(row.id)).toBe(row);
    const gone = merged(
      before,
      { ...stamp, locks: { changed: [], removed: [row.id], isCut: false, unreachable: 0 } },
      false,
    );
    expect(gone.locks?.rows.size).toBe(0);
  });

  it("drops a lock that the viewer may no longer see", () => {
    expect(merged({}, { ...stamp, lock: null }, false)).toEqual({ lock: null });
  });
});

it("the page is live only when all its data has arrived and Redis replies", () => {
  const state: StreamState = { ...stamp, store: UP, locks: { rows: [], isCut: false, unreachable: 0 }, clients: null };
  expect(hasAll(["locks"], state)).toBe(true);
  expect(hasAll(["locks", "clients"], state)).toBe(false);
  expect(hasAll(["locks"], { ...state, locks: { rows: [row], isCut: true, unreachable: 0, isPartial: true } })).toBe(
    false,
  );
  expect(hasAll([], state)).toBe(true);
  expect(livenessOf(UP, true)).toBe("live");
  expect(livenessOf(UP, false)).toBe("loading");
  expect(livenessOf(DOWN, true)).toBe("down");
});
