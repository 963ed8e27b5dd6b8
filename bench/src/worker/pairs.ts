import type { Contestant } from "../adapters/adapter.js";
import { quantile } from "../statistics.js";
import type { PairsDone, Times } from "./orders.js";

/** Many names, as in a real service, and few enough that the server's memory stays in its caches. */
const NAMES: readonly string[] = Array.from({ length: 1_024 }, (_, i) => `order:${i}`);

/** Acquires and releases free locks until the time is over, `parallel` at a time, each caller on names of its own. */
export async function pairsFor(
  contestant: Contestant,
  { seconds, parallel }: { readonly seconds: number; readonly parallel: number },
): Promise<PairsDone> {
  const before = process.cpuUsage();
  const startedAtMs = performance.now();
  const endAtMs = startedAtMs + seconds * 1_000;
  let pairs = 0;
  const caller = async (first: number): Promise<void> => {
    for (let i = first; performance.now() < endAtMs; i += parallel) {
      const held = await contestant.acquire(nameAt(i));
      await held.release();
      pairs += 1;
    }
  };
  await Promise.all(Array.from({ length: parallel }, (_, first) => caller(first)));
  const { user, system } = process.cpuUsage(before);
  return { pairs, tookMs: performance.now() - startedAtMs, processorUs: user + system };
}

/** As `pairsFor`, one at a time; how long each pair took. */
export async function timesFor(contestant: Contestant, seconds: number): Promise<Times> {
  const times: number[] = [];
  const endAtMs = performance.now() + seconds * 1_000;
  for (let i = 0, startedAtMs = performance.now(); startedAtMs < endAtMs; i += 1) {
    const held = await contestant.acquire(nameAt(i));
    await held.release();
    const nowMs = performance.now();
    times.push((nowMs - startedAtMs) * 1_000);
    startedAtMs = nowMs;
  }
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

function nameAt(i: number): string {
  return NAMES[i % NAMES.length] ?? "order";
}
