import { expect, it } from "vitest";
import { durationMs } from "../../src/ui/durations.js";

it.each([
  ["250ms", 250],
  ["30", 30_000],
  ["1.5", 1_500],
  ["5m", 300_000],
  ["1h30m", 5_400_000],
  ["2d", 172_800_000],
])("a duration is read as on the command line: %s", (text, ms) => {
  expect(durationMs(text)).toBe(ms);
});

it.each(["", "m", "5x", "1h 30m", "-5m"])("is not a duration: %j", (text) => {
  expect(durationMs(text)).toBeUndefined();
});
