import type { Contestant } from "../adapters/adapter.js";
import { quantile } from "../statistics.js";
import type { Pairs, PairsDone, Times } from "./orders.js";

/** Many names, as in a real service, and few enough that the server's memory stays in its caches. */
export const NAMES = 1_024;
const PREFIX = "order";

/** Acquires and releases free locks, `parallel` at a time, until the time is over and `atLeast` pairs are done. */
export async function pairsFor(
  contestant: Contestant,
  { seconds, parallel, prefix = PREFIX, atLeast = 0 }: Omit<Pairs, "task">,
): Promise<PairsDone> {
  const names = namesOf(prefix);
  const before = process.cpuUsage();
  const startedAtMs = performance.now();
  const endAtMs = startedAtMs + seconds * 1_000;
  let pairs = 0;
  const caller = async (first: number): Promise<void> => {
    for (let i = first; performance.now() < endAtMs || pairs < atLeast; i += parallel) {
      const held = await contestant.acquire(nameIn(names, i));
      await held.release();
      pairs += 1;
    }
  };
  await Promise.all(Array.from({ length: parallel }, (_, first) => caller(first)));
  const { user, system } = process.cpuUsage(before);
  return { pairs, tookMs: performance.now() - startedAtMs, processorUs: user + system };
}

/** Like `pairsFor`, one at a time. Returns percentiles of the time of a pair. */
export async function timesFor(contestant: Contestant, seconds: number): Promise<Times> {
  const times: number[] = [];
  const names = namesOf(PREFIX);
  const endAtMs = performance.now() + seconds * 1_000;
  for (let i = 0, startedAtMs = performance.now(); startedAtMs < endAtMs; i += 1) {
    const held = await contestant.acquire(nameIn(names, i));
    await held.release();
    const nowMs = performance.now();
    times.push((nowMs - startedAtMs) * 1_000);
    startedAtMs = nowMs;
  }
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

function namesOf(prefix: string): readonly string[] {
  return Array.from({ length: NAMES }, (_, i) => `${prefix}:${i}`);
}

function nameIn(names: readonly string[], i: number): string {
  return names[i % NAMES] ?? PREFIX;
}
