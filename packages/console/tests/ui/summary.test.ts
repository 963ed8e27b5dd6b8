import { describe, expect, it } from "vitest";
import type { LockRow } from "../../src/api.js";
import { readFilter } from "../../src/filter.js";
import { plain } from "../../src/plain.js";
import { isNameTyped, partialText, releaseCommand, talliesOf } from "../../src/ui/summary.js";

function row(given: Partial<LockRow>): LockRow {
  return {
    state: "held",
    waiterCount: 0,
    pause: null,
    holders: [],
    holderCount: 1,
    goneCount: 0,
    label: null,
    name: "a",
    ...given,
  } as LockRow;
}

it("the counts of the first page equal the number of rows that their filters list", () => {
  const pause = { by: "ana", reason: "db", sinceAtMs: 1, untilAtMs: null, id: "1" };
  const rows = [
    row({}),
    row({ waiterCount: 2 }),
    row({ state: "paused", pause, waiterCount: 1 }),
    row({ state: "held", pause }),
    row({ state: "counting" }),
    row({ goneCount: 1 }),
  ];
  const tallies = talliesOf(rows);
  expect(tallies.map(({ word, n }) => `${n} ${word}`)).toEqual(["4 held", "2 waited for", "2 paused", "1 gone"]);
  for (const { q, n } of tallies) expect(rows.filter((one) => readFilter(q)(one, 0))).toHaveLength(n);
});

it("a search for deadlocks that did not read all locks never says that there are none", () => {
  const why = "there are too many locks, or a server did not reply.";
  expect(partialText(0)).toBe(`Not all locks were searched, so there may be deadlocks: ${why}`);
  expect(partialText(1)).toBe(`Not all locks were searched, so there may be more deadlocks: ${why}`);
});

describe("the command that releases a hold", () => {
  it("contains the lock's name and token, quoted for a shell", () => {
    expect(releaseCommand({ name: "deploy:prod", key: null }, 12)).toBe(
      "holdfast release deploy:prod --token 12 -m 'WHY'",
    );
    expect(releaseCommand({ name: "it's $(two)", key: null }, 12)).toBe(
      "holdfast release 'it'\\''s $(two)' --token 12 -m 'WHY'",
    );
  });

  it.each([
    [{ name: "a", key: null }, null],
    [{ name: "a", key: "own" }, 12],
    [{ name: "-a", key: null }, 12],
    [{ name: "a\nb", key: null }, 12],
    [{ name: "a\u202eb", key: null }, 12],
  ])("is absent for %j with the token %j", (lock, token) => {
    expect(releaseCommand(lock, token)).toBeUndefined();
  });
});

describe("untrusted text", () => {
  it("is shown with escapes for control characters and for characters that change the writing direction", () => {
    expect(plain("a\u202eb\u200f\u061c\u2066")).toBe("a\\u202eb\\u200f\\u061c\\u2066");
    expect(plain("\u001b[31m\n")).toBe("\\x1b[31m\\x0a");
    expect(plain("\u05e9\u05dc\u05d5\u05dd \ud83d\udc68\u200d\ud83d\udd27")).toBe(
      "\u05e9\u05dc\u05d5\u05dd \ud83d\udc68\u200d\ud83d\udd27",
    );
  });

  it("can be typed as it is shown to confirm an action", () => {
    expect(isNameTyped("a\\u202eb", "a\u202eb")).toBe(true);
    expect(isNameTyped("a\u202eb", "a\u202eb")).toBe(true);
    expect(isNameTyped("ab", "a\u202eb")).toBe(false);
  });
});
