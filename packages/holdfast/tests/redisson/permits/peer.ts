/** Whoever is on the other side: a Java service, or a model of one. Verbs and values are those of the Java peer. */
import type { Redis } from "ioredis";
import type { Holdfast } from "../../../src/index.js";
import type { RecheckOptions, Redisson } from "../../../src/interop/redisson/index.js";

/**
 * Names are `semaphore.…`, `permit.…` and `latch.…`; each takes the `name` of the object. What takes `waitMs` answers false, or
 * null in place of an id, when that is over; what waits without it waits for ever.
 */
export interface PermitPeer {
  call<Answer = boolean>(verb: string, values: Readonly<Record<string, unknown>>): Promise<Answer>;
}

/** Both sides on one server. */
export interface TwoSides {
  readonly peer: PermitPeer;
  /** A client of its own, for what nobody else would do. */
  readonly redis: Redis;
  /** Of one process of ours; each call makes another one. */
  process(): { readonly redisson: Redisson; readonly holdfast: Holdfast };
  /** What was published since the last call, as `<channel> <message>`, in order. */
  heard(): Promise<string[]>;
  /** How often what is repeated to be sure is repeated. */
  readonly rounds: number;
  /** How long both sides contend. */
  readonly contendMs: number;
  /** Says what that came to. */
  tell?(what: string, report: object): void;
}

/** Waiters that only a message or the end of a lease can wake while a test lasts. */
export const BY_MESSAGE: RecheckOptions = { recheckMs: 60_000 };

/** Waits until so many of either side listen to that channel. */
export async function untilHeard({ redis }: Pick<TwoSides, "redis">, channel: string, least: number): Promise<void> {
  while (Number((await redis.pubsub("NUMSUB", channel))[1]) < least) await new Promise((go) => setTimeout(go, 5));
}

/** What a worker of either side does: waits for permits, and returns how to give them back. */
export type Worker = () => Promise<() => Promise<unknown>>;

/**
 * Workers take permits and give them back in turn, for so long; each has one.
 *
 * @returns how many were inside at the same time at most, how often anybody was, and how long the longest wait was
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
