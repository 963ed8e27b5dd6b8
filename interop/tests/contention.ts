/**
 * Both sides of a lock at random, around a counter that only the lock protects: whoever holds it reads the counter, pauses
 * and writes it back one higher, here as in every peer. An update that is lost shows that two were inside.
 */
import { expect } from "vitest";
import { sleep } from "../../packages/holdfast/src/testing/delays.js";

/** How long a contention run takes; INTEROP_SECONDS=60 for the long one. */
export const CONTENTION_MS: number = Number(process.env.INTEROP_SECONDS ?? 10) * 1_000;

/** Whether somebody asked for a long run. */
export const IS_LONG_RUN: boolean = process.env.INTEROP_SECONDS !== undefined;

/** As `CONTENTION_MS`, where the topology or the release is another one and everything else is the same. */
export const ELSEWHERE_MS: number = IS_LONG_RUN ? CONTENTION_MS : 2_000;

/** How often a release has to wake whoever waits: in a long run so often that a message which is lost now and then shows. */
export const WAKES: number = IS_LONG_RUN ? 1_000 : 20;

/** Says what a long run came to; a short one says it only when it fails. */
export function tell(what: string, report: string): void {
  if (IS_LONG_RUN) process.stderr.write(`${what}: ${report}\n`);
}

const PAUSE_MS = 3;

/** Where the counter is: one server, or a cluster. */
export interface CounterStore {
  get(key: string): Promise<string | null>;
  set(key: string, value: number): Promise<unknown>;
}

/** What one contender did. */
export interface Contender {
  readonly rounds: number;
  readonly refusals: number;
  readonly longestWaitMs: number;
}

/** What can be given back. */
export interface Held {
  release(): Promise<unknown>;
}

/** Contends in this process. `acquire` waits as long as its protocol does, or gives null if it was refused. */
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

/** As `contendHere`, for those who only read the counter: `changes` says how often it was another while they did. */
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

/** Who contends, by name. */
export type Contenders = Readonly<Record<string, (counter: string) => Promise<Contender>>>;

/**
 * Lets them contend at the same time, and fails if an update was lost, or if somebody never got in or waited too long.
 *
 * @param isSure  whether everybody gets in while this lasts
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
