import { readFileSync } from "node:fs";
import { afterEach, describe, expect, test, vi } from "vitest";
import { VERSION } from "../../src/client-record/client-record.js";
import { systemRuntime } from "../../src/core/runtime.js";

afterEach(() => {
  vi.useRealTimers();
});

describe("a timer of this machine", () => {
  test("longer than Node's own can be does not fire at once, but when it is due", () => {
    vi.useFakeTimers();
    const max = 2 ** 31 - 1;
    for (const delayMs of [max, max + 1, 2 * max + 500, 31_536_000_000]) {
      const fired = vi.fn();
      systemRuntime.startTimer(fired, delayMs, false);
      vi.advanceTimersByTime(delayMs - 1);
      expect(fired).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(fired).toHaveBeenCalledTimes(1);
    }
  });

  test("of Infinity never fires, and of 0 or less not before this turn is over", () => {
    vi.useFakeTimers();
    const never = vi.fn();
    const soon = vi.fn();
    systemRuntime.startTimer(never, Infinity, false);
    systemRuntime.startTimer(soon, -5, false);
    expect(soon).not.toHaveBeenCalled();
    vi.advanceTimersByTime(31_536_000_000);
    expect(never).not.toHaveBeenCalled();
    expect(soon).toHaveBeenCalledTimes(1);
  });

  test("can be cancelled at any time, in its later parts too, and twice", () => {
    vi.useFakeTimers();
    const fired = vi.fn();
    const timer = systemRuntime.startTimer(fired, 2 ** 32, false);
    vi.advanceTimersByTime(2 ** 31);
    timer.cancel();
    timer.cancel();
    vi.advanceTimersByTime(2 ** 33);
    expect(fired).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("keeps the process alive only if it is told to, however long it is", () => {
    const alive = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = alive();
    const idle = [5_000, 2 ** 40].map((delayMs) => systemRuntime.startTimer(() => {}, delayMs, false));
    expect(alive()).toBe(before);
    const busy = [5_000, 2 ** 40].map((delayMs) => systemRuntime.startTimer(() => {}, delayMs, true));
    expect(alive()).toBe(before + 2);
    for (const timer of [...idle, ...busy]) timer.cancel();
    expect(alive()).toBe(before);
  });
});

test("the version that a client writes into its record is that of the package", () => {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  expect(manifest).toMatchObject({ version: VERSION });
});
