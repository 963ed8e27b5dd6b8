import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { VERSION } from "../../src/client-record/client-record.js";
import { type Runtime, systemRuntime } from "../../src/core/runtime.js";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("a client id", () => {
  test("never begins with a dash, which a command line would read as a flag", () => {
    const ids = Array.from({ length: 2_000 }, () => systemRuntime.newClientId());
    expect(ids.filter((id) => !/^[A-Za-z0-9_][A-Za-z0-9_-]{15}$/.test(id))).toEqual([]);
  });
});

describe("a timer", () => {
  test("longer than Node.js supports fires exactly when it is due", () => {
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

  test("of Infinity never fires, and of 0 or less fires after the current turn", () => {
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

  test("can be canceled at any time, even twice", () => {
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

  test("keeps the process alive only if requested, however long it is", () => {
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

describe("waiter timers due at the same time", () => {
  const CALLBACK_MS = 2;
  let events: string[];
  let nowMs: number;

  /** Starts `count` timers that fire in one turn. Each callback takes a while on the runtime's clock. */
  function startTimers(count: number, onFire: (i: number) => void = () => {}): ReturnType<Runtime["startTimer"]>[] {
    return Array.from({ length: count }, (_, i) =>
      systemRuntime.startTimer(
        () => {
          events.push(`waiter ${i}`);
          nowMs += CALLBACK_MS;
          onFire(i);
        },
        1,
        true,
      ),
    );
  }

  /** Blocks the event loop until the timers are due, then records each turn until all have fired. */
  async function untilFired(count: number): Promise<void> {
    const untilMs = Date.now() + 20;
    while (Date.now() < untilMs);
    while (events.filter((event) => event.startsWith("waiter")).length < count) {
      await new Promise((resolve) => setImmediate(resolve));
      events.push("turn");
    }
  }

  beforeEach(() => {
    events = [];
    nowMs = 1_000;
    vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  });

  test("yield to other work after 5 ms and keep their order", async () => {
    startTimers(10);
    await untilFired(10);
    expect(events.filter((event) => event !== "turn")).toEqual(Array.from({ length: 10 }, (_, i) => `waiter ${i}`));
    const runs = events.join().split("turn");
    expect(runs.length).toBeGreaterThan(3);
    for (const run of runs) expect(run.match(/waiter/g)?.length ?? 0).toBeLessThanOrEqual(3);
  });

  test("do not delay the timer of a held lease", async () => {
    startTimers(10);
    systemRuntime.startTimer(() => events.push("lease"), 1, false);
    await untilFired(10);
    expect(events.indexOf("lease")).toBeLessThan(events.indexOf("waiter 5"));
  });

  test("can be canceled while they wait for their turn", async () => {
    const timers = startTimers(10, (i) => {
      if (i === 4) timers[8]?.cancel();
    });
    await untilFired(9);
    expect(events).not.toContain("waiter 8");
    expect(events).toContain("waiter 9");
  });
});

test("the version in the client record is the version of the package", () => {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  expect(manifest).toMatchObject({ version: VERSION });
});
