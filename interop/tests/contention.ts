/**
 * Both sides acquire a lock at random and increment a counter that only the lock protects: the holder reads the
 * counter, pauses, and writes it back incremented, here and in every peer. A lost update shows that there were two
 * holders.
 */
import { expect } from "vitest";
import { sleep } from "../../packages/holdfast/src/testing/delays.js";

/** The duration of a contention run; INTEROP_SECONDS=60 for a long one. */
export const CONTENTION_MS: number = Number(process.env.INTEROP_SECONDS ?? 10) * 1_000;

/** Whether INTEROP_SECONDS requests a long run. */
export const IS_LONG_RUN: boolean = process.env.INTEROP_SECONDS !== undefined;

/** The duration for runs that differ only in topology or release. */
export const ELSEWHERE_MS: number = IS_LONG_RUN ? CONTENTION_MS : 2_000;

/** How many releases must wake a waiter. A long run has enough to notice a message that is lost only occasionally. */
export const WAKES: number = IS_LONG_RUN ? 1_000 : 20;

/** Prints the result of a long run. Short runs print only failures. */
export function tell(what: string, report: string): void {
  if (IS_LONG_RUN) process.stderr.write(`${what}: ${report}\n`);
}

const PAUSE_MS = 3;

/** The store of the counter: one server, or a cluster. */
export interface CounterStore {
  get(key: string): Promise<string | null>;
  set(key: string, value: number): Promise<unknown>;
}

/** The result of one contender. */
export interface Contender {
  readonly rounds: number;
  readonly refusals: number;
  readonly longestWaitMs: number;
}

/** A hold that can be released. */
export interface Held {
  release(): Promise<unknown>;
}

/** Contends in this process. `acquire` waits as its protocol does, and returns null if it was refused. */
export function contendHere(
  redis: CounterStore,
  counter: string,
  acquire: () => Promise<Held | null>,
  forMs: number = CONTENTION_MS,
): Promise<Contender> {
  return loop(forMs, acquire, async () => {
    const seen = Number(await redis.get(counter));
    await sleep(Math.random() * PAUSE_MS);
    await redis.set(counter, seen + 1);
  });
}

/**
 * Like `contendHere`, for readers of the counter. `changes` counts how often the counter changed during a read lock.
 */
export async function watchHere(
  redis: CounterStore,
  counter: string,
  acquire: () => Promise<Held | null>,
): Promise<Contender & { readonly changes: number }> {
  let changes = 0;
  const contender = await loop(CONTENTION_MS, acquire, async () => {
    const seen = await redis.get(counter);
    await sleep(Math.random() * PAUSE_MS);
    if (seen !== (await redis.get(counter))) changes += 1;
  });
  return { ...contender, changes };
}

async function loop(forMs: number, acquire: () => Promise<Held | null>, work: () => Promise<void>): Promise<Contender> {
  const endAtMs = performance.now() + forMs;
  let rounds = 0;
  let refusals = 0;
  let longestWaitMs = 0;
  while (performance.now() < endAtMs) {
    const askedAtMs = performance.now();
    const held = await acquire();
    longestWaitMs = Math.max(longestWaitMs, performance.now() - askedAtMs);
    if (held === null) {
      refusals += 1;
      await sleep(Math.random() * 20);
      continue;
    }
    await work();
    await held.release();
    rounds += 1;
    await sleep(Math.random() * PAUSE_MS);
  }
  return { rounds, refusals, longestWaitMs };
}

/** The contenders, by name. */
export type Contenders = Readonly<Record<string, (counter: string) => Promise<Contender>>>;

/**
 * Runs all contenders at the same time. Fails if an update was lost, or if a contender never acquired the lock or
 * waited too long.
 *
 * @param isSure  whether every contender is certain to acquire the lock during the run
 */
export async function expectNoLostUpdate(
  redis: CounterStore,
  contenders: Contenders,
  longestWaitMs: number,
  what: string,
  {
    counter = `counter:${Math.random()}`,
    isSure = true,
  }: { readonly counter?: string; readonly isSure?: boolean } = {},
): Promise<void> {
  await redis.set(counter, 0);
  const names = Object.keys(contenders);
  const results = await Promise.all(Object.values(contenders).map((contend) => contend(counter)));
  const total = results.reduce((sum, { rounds }) => sum + rounds, 0);
  const report = names.map((name, i) => `${name} ${JSON.stringify(results[i])}`).join(", ");
  const counted = Number(await redis.get(counter));
  tell(what, `${total} rounds, ${total - counted} lost: ${report}`);
  expect(counted, report).toBe(total);
  expect(total, report).toBeGreaterThan(0);
  for (const result of results) {
    if (isSure) expect(result.rounds, report).toBeGreaterThan(0);
    expect(result.longestWaitMs, report).toBeLessThanOrEqual(longestWaitMs);
  }
}
