/** When a holder can be told at once that its lock was taken away: a client that has just been made does not listen yet. */
import type { Redis } from "ioredis";
import { expect, vi } from "vitest";

/** Resolves when the client of that owner listens to its inbox. */
export async function hears(redis: Redis, owner: string): Promise<void> {
  const inbox = `hf:in:${owner.split("/")[0]}`;
  const listeners = async (): Promise<unknown> => await redis.pubsub("NUMSUB", inbox);
  await vi.waitFor(async () => expect(await listeners()).toEqual([inbox, 1]), { timeout: 60_000, interval: 10 });
}
