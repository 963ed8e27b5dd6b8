import { expect, it } from "vitest";
import { Reconnects } from "../../src/core/inbox-check.js";
import { ManualRuntime } from "./manual-runtime.js";

function scene(): { runtime: ManualRuntime; reconnects: Reconnects; toldAtMs: number[] } {
  const runtime = new ManualRuntime();
  const startedAtMs = runtime.monotonicMs();
  const toldAtMs: number[] = [];
  const reconnects = new Reconnects(runtime, () => void toldAtMs.push(runtime.monotonicMs() - startedAtMs));
  return { runtime, reconnects, toldAtMs };
}

it("reports a first reconnect in the same turn", () => {
  const { reconnects, toldAtMs } = scene();
  reconnects.happened();
  expect(toldAtMs).toEqual([0]);
});

it("reports frequent reconnects with pauses that grow to 1 to 2 s", async () => {
  const { runtime, reconnects, toldAtMs } = scene();
  for (let i = 0; i < 10_000; i += 1) {
    reconnects.happened();
    await runtime.advance(2);
  }
  const pauses = toldAtMs.map((atMs, i) => atMs - (toldAtMs[i - 1] ?? 0)).slice(1);
  // The random factor is fixed, so the pauses are 38 ms to 1.5 s. A reconnect every 2 ms starts the timer up to 2 ms
  // late.
  expect(pauses.slice(0, 6)).toEqual(pauses.slice(0, 6).toSorted((a, b) => a - b));
  expect(pauses[0]).toBeGreaterThanOrEqual(37);
  expect(pauses.length).toBeLessThan(20);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(1_502);
});

it("reports the last reconnect even if no other follows", async () => {
  const { runtime, reconnects, toldAtMs } = scene();
  for (let i = 0; i < 3; i += 1) reconnects.happened();
  await runtime.advance(100);
  expect(toldAtMs).toEqual([0, 38]);
});

it("reports the next reconnect immediately after a quiet period", async () => {
  const { runtime, reconnects, toldAtMs } = scene();
  for (let i = 0; i < 100; i += 1) {
    reconnects.happened();
    await runtime.advance(10);
  }
  const before = toldAtMs.length;
  await runtime.advance(10_001);
  reconnects.happened();
  expect(toldAtMs.length).toBeGreaterThan(before);
  expect(toldAtMs.at(-1)).toBe(11_001);
});

it("reports nothing after close", async () => {
  const { runtime, reconnects, toldAtMs } = scene();
  for (let i = 0; i < 3; i += 1) reconnects.happened();
  reconnects.close();
  await runtime.advance(5_000);
  expect(toldAtMs).toEqual([0]);
});
