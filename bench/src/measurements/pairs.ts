import type { Contestant } from "../adapters/adapter.js";

/** Many names, as in a real service, and few enough that the server's memory stays in its caches. */
const NAMES: readonly string[] = Array.from({ length: 1_024 }, (_, i) => `order:${i}`);

/** A warm-up is this share of a run. */
const WARM_UP_SHARE = 0.5;

/**
 * Acquires and releases free locks until the time is over, `parallel` at a time, each caller on names of its own.
 *
 * @returns pairs completed, and the time it took, in ms
 */
export async function pairsFor(
  contestant: Contestant,
  { seconds, parallel }: { readonly seconds: number; readonly parallel: number },
): Promise<{ readonly pairs: number; readonly tookMs: number }> {
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
  return { pairs, tookMs: performance.now() - startedAtMs };
}

/** As `pairsFor`, one at a time; how long each pair took, in µs. */
export async function timesFor(contestant: Contestant, seconds: number): Promise<number[]> {
  const times: number[] = [];
  const endAtMs = performance.now() + seconds * 1_000;
  for (let i = 0, startedAtMs = performance.now(); startedAtMs < endAtMs; i += 1) {
    const held = await contestant.acquire(nameAt(i));
    await held.release();
    const nowMs = performance.now();
    times.push((nowMs - startedAtMs) * 1_000);
    startedAtMs = nowMs;
  }
  return times;
}

/** Runs until the compiler has seen what it needs. */
export async function warmUp(contestant: Contestant, seconds: number, parallel: number): Promise<void> {
  await pairsFor(contestant, { seconds: seconds * WARM_UP_SHARE, parallel });
}

function nameAt(i: number): string {
  return NAMES[i % NAMES.length] ?? "order";
}
