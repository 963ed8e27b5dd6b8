/** The other side: a Java service or a model of one, with the verbs and values of the Java peer. */

import type { Holdfast } from "holdfast";
import type { Redis } from "ioredis";
import type { RecheckOptions, Redisson } from "../../../src/redisson/index.js";

/**
 * Verbs are `semaphore.…`, `permit.…` and `latch.…`, and each takes the `name` of the object. A wait with `waitMs` that
 * times out returns false, or null in place of an id. A wait without `waitMs` has no time limit.
 */
export interface PermitPeer {
  call<Answer = boolean>(verb: string, values: Readonly<Record<string, unknown>>): Promise<Answer>;
}

/** Both sides on one server. */
export interface TwoSides {
  readonly peer: PermitPeer;
  /** A separate client for direct access to the server. */
  readonly redis: Redis;
  /** Makes a new Node process. */
  process(): { readonly redisson: Redisson; readonly holdfast: Holdfast };
  /** Messages published since the last call, as `<channel> <message>`, in order. */
  heard(): Promise<string[]>;
  /** Number of rounds in tests that repeat their steps. */
  readonly rounds: number;
  /** How long both sides contend. */
  readonly contendMs: number;
  /** Reports the result of the contention. */
  tell?(what: string, report: object): void;
}

/** Re-checks so rarely that only a message or the end of a lease can wake a waiter during a test. */
export const BY_MESSAGE: RecheckOptions = { recheckMs: 60_000 };

/** Waits until the channel has at least `least` subscribers. */
export async function untilHeard({ redis }: Pick<TwoSides, "redis">, channel: string, least: number): Promise<void> {
  while (Number((await redis.pubsub("NUMSUB", channel))[1]) < least) await new Promise((go) => setTimeout(go, 5));
}

/** Waits for permits and returns a function that releases them. */
export type Worker = () => Promise<() => Promise<unknown>>;

/**
 * Lets all workers acquire and release permits concurrently for `forMs`.
 *
 * @returns the maximum number of concurrent holders, the number of turns of each worker, and the longest wait
 */
export async function contend(
  workers: readonly Worker[],
  forMs: number,
): Promise<{ readonly most: number; readonly turns: readonly number[]; readonly longestMs: number }> {
  const endMs = performance.now() + forMs;
  const turns = workers.map(() => 0);
  let [inside, most, longestMs] = [0, 0, 0];
  await Promise.all(
    workers.map(async (acquire, worker) => {
      while (performance.now() < endMs) {
        const askedMs = performance.now();
        const release = await acquire();
        longestMs = Math.max(longestMs, performance.now() - askedMs);
        inside += 1;
        most = Math.max(most, inside);
        turns[worker] = (turns[worker] ?? 0) + 1;
        await new Promise((go) => setTimeout(go, Math.random() * 5));
        inside -= 1;
        await release();
      }
    }),
  );
  return { most, turns, longestMs };
}
