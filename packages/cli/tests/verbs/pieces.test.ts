/** Tests the parts of the verbs that need no server. */
import { describe, expect, it } from "vitest";
import { CliError } from "../../src/frame/exit-codes.js";
import { clip } from "../../src/live/clip.js";
import { keysOf } from "../../src/live/keyboard.js";
import { endOf, parseInstant } from "../../src/text/instants.js";

describe("a line that is clipped", () => {
  it("fits into the given number of cells, and ends with an ellipsis if it was cut", () => {
    expect(clip("abcdef", 6)).toBe("abcdef");
    expect(clip("abcdefg", 6)).toBe("abcde…");
    expect(clip("", 6)).toBe("");
  });

  it("counts wide characters as two cells, and combining characters as none", () => {
    expect(clip("日本語", 6)).toBe("日本語");
    expect(clip("日本語", 5)).toBe("日本…");
    expect(clip("日本語", 4)).toBe("日…");
    expect(clip("e\u0301e\u0301e\u0301", 3)).toBe("e\u0301e\u0301e\u0301");
  });

  it("keeps colors, which take no cell, and resets them where it is cut", () => {
    expect(clip("\x1b[33mabc\x1b[39m", 3)).toBe("\x1b[33mabc\x1b[39m");
    expect(clip("\x1b[33mabcdef\x1b[39m", 4)).toBe("\x1b[33mabc…\x1b[0m");
  });
});

describe("keys", () => {
  it("are read one by one, and arrow and function keys are ignored", () => {
    expect(keysOf("s")).toEqual(["s"]);
    expect(keysOf("ab\x7f\r")).toEqual(["a", "b", "backspace", "enter"]);
    expect(keysOf("\x1b[A\x1bOP\x1b[15~")).toEqual([]);
    expect(keysOf("\x1b")).toEqual(["escape"]);
    expect(keysOf("\x03")).toEqual(["interrupt"]);
    expect(keysOf("\x01é")).toEqual(["é"]);
  });
});

describe("a time in the future", () => {
  const now = new Date(2026, 10, 22, 17, 0, 0).getTime();

  it("is the next occurrence of a time of day, or a date with or without a zone", () => {
    expect(parseInstant("--until", "18:30", now)).toBe(new Date(2026, 10, 22, 18, 30).getTime());
    expect(parseInstant("--until", "16:30", now)).toBe(new Date(2026, 10, 23, 16, 30).getTime());
    expect(parseInstant("--until", "2026-12-01T10:00Z", now)).toBe(Date.UTC(2026, 11, 1, 10));
    expect(parseInstant("--until", "2026-12-01 10:00", now)).toBe(new Date(2026, 11, 1, 10).getTime());
  });

  it("is refused if it has passed or is invalid", () => {
    for (const text of ["2026-11-22T16:00", "25:00", "soon", "12", "", "2026-13-01"]) {
      expect(() => parseInstant("--until", text, now), text).toThrow(CliError);
    }
  });

  it("is given as a duration or as a time, and not as both", () => {
    expect(endOf({ for: "90m", until: undefined }, now)).toBe(now + 5_400_000);
    expect(endOf({ for: undefined, until: undefined }, now)).toBeUndefined();
    expect(() => endOf({ for: "1h", until: "18:00" }, now)).toThrow("use only one");
  });
});
